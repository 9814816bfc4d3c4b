"""The interface of writing: data files, fragments and whole datasets."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.encodings.profile import PROFILES, ProfileName
    from lance_engine.encodings.settings import GENERAL_SCHEMES
    from lance_engine.write.blob_schema import with_blobs_v2
    from lance_engine.write.check import check_writable
    from lance_engine.write.dataset import check_extension, storage_version_for, write_dataset
    from lance_engine.write.files import Rows, format_of, is_dataset_path, open_files
    from lance_engine.write.fragments import DATA_FOLDER, data_paths, write_fragments
    from lance_engine.write.options import WriteOptions, ZoneMapForm
    from lance_engine.write.source import check_compatible, conform
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "encodings.profile": "PROFILES ProfileName",
            "encodings.settings": "GENERAL_SCHEMES",
            "write.blob_schema": "with_blobs_v2",
            "write.check": "check_writable",
            "write.dataset": "check_extension storage_version_for write_dataset",
            "write.files": "Rows format_of is_dataset_path open_files",
            "write.fragments": "DATA_FOLDER data_paths write_fragments",
            "write.options": "WriteOptions ZoneMapForm",
            "write.source": "check_compatible conform",
        },
    )
