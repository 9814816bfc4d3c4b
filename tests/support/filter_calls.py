"""Calls of every scalar function of DataFusion that filters may hold, with several arguments each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.types as at

#: Calls that are always refused, with the reason.
REFUSED = {
    "random()": "another value in each call",
    "uuid()": "another value in each call",
    "version()": "describes the engine",
    "map(['a'], [1])": "maps cannot be made",
    "row_number() OVER ()": "windows",
    "count(i)": "aggregates",
}

CALLS = r"""
abs: i | g | de
acos: h | f | 0.5
acosh: g | i | 2.0
array_any_value: l | ls | lf
array_append: l,3 | ls,'x' | lf,1.5
array_cat: l,l | ls,ls | lf,lf
array_compact: l
array_concat: l,l | ls,ls | l,[9]
array_contains: l,2 | ls,'a' | lf,2.5
array_dims: l | ll | ls
array_distance: fl,[1.0,1.0] | lf,lf | fl,fl
array_distinct: l | ls | lf
array_element: l,1 | ls,-1 | lf,2
array_empty: l | ls | ll
array_except: l,[1] | ls,['a'] | l,l
array_extract: l,1 | ls,2 | lf,1
array_flatten: ll
array_has: l,2 | ls,'a' | lf,0.0
array_has_all: l,[1] | ls,['a'] | l,l
array_has_any: l,[1,9] | ls,['a','z'] | l,l
array_indexof: l,2 | ls,'b'
array_intersect: l,[1] | ls,['a'] | l,l
array_join: ls,',' | l,'-' | ls,',','null'
array_length: l | ls | ll,1
array_max: l | ls | lf
array_min: l | ls | lf
array_ndims: l | ll | ls
array_pop_back: l | ls | lf
array_pop_front: l | ls | lf
array_position: l,2 | ls,'b' | l,2,2
array_positions: l,2 | ls,'b' | lf,2.5
array_prepend: 3,l | 'x',ls | 1.5,lf
array_push_back: l,3 | ls,'x'
array_push_front: 3,l | 'x',ls
array_remove: l,2 | ls,'a' | lf,2.5
array_remove_all: l,2 | ls,'a' | lf,2.5
array_remove_n: lf,2.5,1 | l,1,1 | ls,'a',1
array_repeat: i,2 | t,2 | 1,3
array_replace: l,2,5 | ls,'a','z' | lf,2.5,0.0
array_replace_all: l,2,5 | ls,'a','z'
array_replace_n: lf,2.5,0.0,1 | l,2,5,1
array_resize: l,3 | l,3,0 | ls,1
array_reverse: l | ls | lf
array_slice: l,1,1 | ls,1,2 | l,1,2,1
array_sort: l | ls,'DESC' | lf
array_sum: l
array_to_string: ls,',' | l,'-' | ls,',','null'
array_union: l,[9] | ls,ls | l,l
arrays_overlap: l,[1,9] | ls,['a','z'] | l,l
arrays_zip: l,l | ls,l
arrow_cast: i,'Int32' | t,'LargeUtf8' | i,'Float64'
arrow_metadata: i | i,'k'
arrow_typeof: i | t | l
ascii: t | 'A' | tj
asin: h | f | 0.5
asinh: g | i | h
atan: g | i | h
atan2: g,h | f,g | 1.0,g
atanh: h | 0.5 | g
bit_length: t | b | 'a'
btrim: t | t,'f' | '  x '
cardinality: l | ls
cbrt: g | i | 8
ceil: g | de | h
char_length: t | 'é' | tj
character_length: t | 'é' | tj
chr: j | 65 | u
coalesce: i,j | t,'x' | f,g,1.0
concat: t,'x' | t,i | t,tj,'z'
concat_ws: '-',t,tj | '-',t,'x' | ',',t,i
contains: t,'a' | t,t | tj,'-'
contains_tokens: t,'Bar'
cos: g | i | h
cosh: g | i | h
cot: g | j | h
date_bin: interval '1 day',ts | interval '15 minutes',ts,timestamp '2000-01-01' | interval '1 hour',tz
date_format: ts,'%Y-%m' | d,'%d' | tz,'%H'
date_part: 'year',ts | 'doy',d | 'epoch',ts | 'hour',tm | 'isodow',d | 'week',ts | 'millisecond',ts
date_trunc: 'month',ts | 'day',d | 'hour',tz
datepart: 'month',ts | 'day',d | 'second',ts
datetrunc: 'year',ts | 'week',ts | 'quarter',d
decode: 'YQ','base64' | '61','hex' | t,'hex'
degrees: g | i | h
digest: t,'sha256' | 'a','md5' | b,'sha512'
empty: l | ls | ll
encode: b,'base64' | t,'hex' | b,'hex'
ends_with: t,'o' | t,t | tj,'6'
exp: g | j | h
extract: year FROM ts | month FROM d | minute FROM ts
factorial: j | 5 | u
find_in_set: t,'foo,bar' | 'a','a,b' | tj,'12,13'
flatten: ll | l | ls
floor: g | de | h
from_unixtime: i | 1700000000 | j
gcd: i,j | 12,j | i,3
generate_series: 1,3 | j,5 | 1,9,3
get_field: s,'a' | s,'b'
greatest: i,j | g,0.0 | t,'c'
ifnull: i,0 | t,'x' | f,0.0
initcap: t | 'ab cd' | tj
instr: t,'o' | t,'zz' | tj,'-'
isnan: f | g | h
iszero: f | i | g
json_array_contains: js,'$.c',1
json_array_length: js,'$.c'
json_exists: js,'$.a'
json_extract: js,'$.a'
json_get: js,'a'
json_get_bool: js,'x'
json_get_float: js,'a'
json_get_int: js,'a'
json_get_string: js,'b'
lcm: j,3 | i,j | 4,j
least: i,j | g,0.0 | t,'c'
left: t,2 | t,-1 | tj,j
length: t | 'é' | tj
levenshtein: t,'foo' | t,tj | 'a','b'
list_any_value: l
list_append: l,3 | ls,'x' | lf,1.5
list_cat: l,l
list_concat: l,l
list_contains: l,2
list_dims: l
list_distance: fl,[1.0,1.0] | fl,fl
list_distinct: l
list_element: l,1
list_empty: l
list_except: l,[1]
list_extract: l,1
list_has: l,2
list_has_all: l,[1]
list_has_any: l,[1]
list_indexof: l,2
list_intersect: l,[1]
list_join: ls,','
list_length: l
list_max: l
list_min: l
list_ndims: l
list_overlap: l,[1]
list_pop_back: l
list_pop_front: l
list_position: l,2
list_positions: l,2
list_prepend: 3,l
list_push_back: l,3
list_push_front: 3,l
list_remove: l,2
list_remove_all: l,2
list_remove_n: l,2,1
list_repeat: i,2
list_replace: l,2,5
list_replace_all: l,2,5
list_replace_n: l,2,5,1
list_resize: l,3
list_reverse: l
list_slice: l,1,1
list_sort: l
list_to_string: ls,','
list_union: l,[9]
list_zip: l,l
ln: j | g | 2.5
log: j | 2,j | 10,g
log10: j | g | 100
log2: j | g | 8
lower: t | 'A' | tj
lpad: t,5 | t,5,'x' | tj,3
ltrim: t | t,'f' | ' a'
make_array: 1,2 | i,j | t,'x'
make_date: 2024,2,29 | 2024,j,1 | '2024','1','2'
make_list: 1,2 | i,j
make_map: 'a',1 | 'a',i
make_time: 1,2,3 | j,2,3 | u,0,0
map: make_array('a'),make_array(i)
md5: t | 'a' | b
named_struct: 'a',i,'b',t
nanvl: f,1.0 | f,g | g,f
nullif: i,7 | t,'' | f,g
nvl: i,0 | t,'x' | f,0.0
nvl2: i,j,u | t,'a','b' | f,1,2
octet_length: t | b | 'é'
overlay: t PLACING 'x' FROM 1 | t PLACING 'xy' FROM 2 FOR 1
pi: 
position: 'o' IN t | 'zz' IN t | '-' IN tj
pow: j,2 | g,2 | 2,j
power: g,0.5 | j,3 | 2.0,g
radians: g | i | h
range: 3 | 1,j | 1,9,3
regexp_count: t,'o' | t,'[a-z]' | t,'o',2
regexp_instr: t,'o' | t,'[a-z]+' | tj,'-'
regexp_like: t,'^f' | t,'B','i' | tj,'\d+'
regexp_match: t,'o+' | t,'(a)(.)' | tj,'\d+'
regexp_replace: t,'o','0' | t,'o','0','g' | tj,'\d','x','g'
repeat: t,2 | t,j | 'a',3
replace: t,'o','a' | tj,'-','/' | t,t,'x'
reverse: t | 'ab' | tj
right: t,2 | t,-1 | tj,j
round: g | g,1 | de | i
row: 1,2 | i,t
rpad: t,5 | t,5,'x' | tj,3
rtrim: t | t,'o' | 'a '
sha224: t | 'a' | b
sha256: t | 'a' | b
sha384: t | 'a' | b
sha512: t | 'a' | b
signum: g | i | f
sin: g | i | h
sinh: g | i | h
split_part: t,' ',1 | t,'o',2 | tj,'-',1
sqrt: j | g | h
starts_with: t,'f' | t,t | tj,'2'
string_to_array: t,' ' | tj,'-' | t,'o','f'
string_to_list: t,' ' | tj,'-'
strpos: t,'o' | t,'zz' | tj,'-'
struct: 1,2 | i,t
substr: t,2 | t,1,2 | tj,j
substr_index: t,'o',1 | tj,'-',2 | t,' ',-1
substring: t,2 | t,1,2 | tj,1,4
substring_index: t,'o',1 | tj,'-',2 | t,' ',-1
tan: g | i | h
tanh: g | i | h
to_char: ts,'%Y' | d,'%d.%m' | tz,'%H:%M'
to_date: tj | '2024-01-02' | t | ts
to_hex: j | i | 255
to_local_time: ts | tz | '2024-01-01T00:00:00'
to_time: '01:02:03' | ts | tj
to_timestamp: tj | '2024-01-02' | i
to_timestamp_micros: i | '2024-01-02' | d
to_timestamp_millis: i | '2024-01-02' | d
to_timestamp_nanos: i | '2024-01-02' | d
to_timestamp_seconds: i | '2024-01-02' | d
to_unixtime: ts | '2024-01-02' | d
translate: t,'fo','ab' | tj,'-','/' | 'abc','a','z'
trim: t | '  a ' | BOTH 'f' FROM t
trunc: g | g,1 | h
union_extract: s,'a'
union_tag: s
upper: t | 'a' | tj
"""


def calls() -> Iterator[tuple[str, list[str]]]:
    """Functions with the calls to try."""
    for line in CALLS.strip().splitlines():
        name, arguments = line.split(": ", 1)
        yield name, [f"{name}({found})" for found in arguments.split(" | ")]


def conditions(call: str, context: datafusion.SessionContext) -> Iterator[str]:
    """Filters that show what a call returns for the rows of a table, according to `context`."""
    yield f"{call} IS NOT NULL"
    try:
        values = context.sql(f"SELECT {call} AS value FROM t").to_arrow_table()["value"]
    except Exception:  # beyond this release, or no column of the table
        return
    kind = values.type
    if at.is_boolean(kind):
        yield call
        yield f"NOT {call}"
    for text in list(dict.fromkeys(filter(None, map(_constant, values.to_pylist()))))[:2]:
        if at.is_list(kind):
            yield f"array_length({call}) = {text.count(',') + 1 if len(text) > 2 else 0}"
        else:
            yield f"{call} = {text}"
        if at.is_integer(kind) or at.is_floating(kind):
            yield f"{call} < {text}"


def _constant(value: Any) -> str | None:
    """A value of a row as a filter writes it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return None
    if isinstance(value, list):
        return str(value) if all(isinstance(item, int) for item in value) else None
    if isinstance(value, int | float):
        return repr(value) if value == value and abs(value) != float("inf") else None
    return None


def knowing(table: pa.Table) -> datafusion.SessionContext:
    """What computes calls over a table."""
    context = datafusion.SessionContext()
    context.register_record_batches("t", [table.to_batches()])
    return context
