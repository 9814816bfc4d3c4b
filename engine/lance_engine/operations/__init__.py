"""Operations on existing datasets: rows, columns, versions, files."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.constraints.commit import commit as commit_transaction
    from lance_engine.constraints.declared import with_constraints
    from lance_engine.operations.add_columns import add_columns as add_column_values
    from lance_engine.operations.add_columns import with_columns
    from lance_engine.operations.alter_columns import Values, alter_column
    from lance_engine.operations.change_rows import RowChanges
    from lance_engine.operations.change_rows import change_rows as apply_changes
    from lance_engine.operations.changes import commit_change, write_options
    from lance_engine.operations.column_files import write_columns
    from lance_engine.operations.compact import Rewritten, commit_rewrite, rewrite_options
    from lance_engine.operations.compact import plan as plan_compaction
    from lance_engine.operations.constraints import add_check, add_key, drop_constraint
    from lance_engine.operations.delete import delete_rows
    from lance_engine.operations.fragment_size import DELETED_SHARE, TARGET_BYTES, TARGET_ROWS
    from lance_engine.operations.index_build import build_segment
    from lance_engine.operations.indices import index_target, replaced_segments
    from lance_engine.operations.retry import latest, redo_on_conflict
    from lance_engine.operations.rows import (
        joined,
        live_offsets,
        matching_addresses,
        read_rows,
    )
    from lance_engine.operations.staged import StagedChanges
    from lance_engine.operations.staged_creation import StagedCreation
    from lance_engine.operations.text_build import build_texts
    from lance_engine.operations.text_indices import KINDS as TEXT_KINDS
    from lance_engine.operations.text_indices import chosen_text_options, create_inverted_index
    from lance_engine.operations.update import commit_moved, write_updated
    from lance_engine.operations.values import check_whole_columns
    from lance_engine.operations.vector_build import build_vectors, train_encoder
    from lance_engine.operations.whole import (
        check_folder_name,
        check_newest,
        check_removable,
        drop_dataset,
        rename_dataset,
    )
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "constraints.commit": "commit=commit_transaction",
            "constraints.declared": "with_constraints",
            "operations.add_columns": "add_columns=add_column_values with_columns",
            "operations.alter_columns": "Values alter_column",
            "operations.change_rows": "RowChanges change_rows=apply_changes",
            "operations.changes": "commit_change write_options",
            "operations.column_files": "write_columns",
            "operations.compact": "Rewritten commit_rewrite plan=plan_compaction rewrite_options",
            "operations.constraints": "add_check add_key drop_constraint",
            "operations.delete": "delete_rows",
            "operations.fragment_size": "DELETED_SHARE TARGET_BYTES TARGET_ROWS",
            "operations.index_build": "build_segment",
            "operations.indices": "index_target replaced_segments",
            "operations.retry": "latest redo_on_conflict",
            "operations.rows": "joined live_offsets matching_addresses read_rows",
            "operations.staged": "StagedChanges",
            "operations.staged_creation": "StagedCreation",
            "operations.text_build": "build_texts",
            "operations.text_indices": "KINDS=TEXT_KINDS chosen_text_options create_inverted_index",
            "operations.update": "commit_moved write_updated",
            "operations.values": "check_whole_columns",
            "operations.vector_build": "build_vectors train_encoder",
            "operations.whole": "check_folder_name check_newest check_removable drop_dataset rename_dataset",
        },
    )
