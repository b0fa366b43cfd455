"""Schemas as text, without a JVM."""

import pytest
from pyspark.sql import types as t

from runnel.arrow.ddl import struct_type
from runnel.arrow.decoding import DecodeOptionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id BIGINT", "struct<id:bigint>"),
        ("id long, name String", "struct<id:bigint,name:string>"),
        ("a INT NOT NULL COMMENT 'it, is', b DOUBLE", "struct<a:int,b:double>"),
        ("`a b` INT, `c``d` DATE", "struct<a b:int,c`d:date>"),
        ("a ARRAY<ARRAY<INT>>", "struct<a:array<array<int>>>"),
        ("m MAP<STRING, DECIMAL(10,2)>", "struct<m:map<string,decimal(10,2)>>"),
        (
            "s STRUCT<x: INT, y: STRUCT<z: TIMESTAMP>>",
            "struct<s:struct<x:int,y:struct<z:timestamp>>>",
        ),
        ("struct<a: int, b: string>", "struct<a:int,b:string>"),
        ("struct INT", "struct<struct:int>"),
        ("a DECIMAL, b DECIMAL(5)", "struct<a:decimal(10,0),b:decimal(5,0)>"),
        ("1st TINYINT,", "struct<1st:tinyint>"),
    ],
)
def test_ddl_is_read(text: str, expected: str) -> None:
    assert struct_type(text).simpleString() == expected


def test_not_null_is_kept() -> None:
    assert [field.nullable for field in struct_type("a INT NOT NULL, b INT")] == [False, True]


def test_spark_s_own_json_is_read() -> None:
    schema = t.StructType([t.StructField("a", t.MapType(t.StringType(), t.LongType()))])
    assert struct_type(schema.json()) == schema


@pytest.mark.parametrize(
    "text",
    [
        *("", "id", "id BIGINTEGER", "id BIGINT name STRING", "a ARRAY<INT", "a ARRAY<INT>>"),
        *("a DECIMAL(39,0)", "a DECIMAL(2,3)", "{}", '{"type": 1}', "a " + "ARRAY<" * 60),
        *("a INT NOT", "a; INT"),
    ],
)
def test_what_is_no_schema_is_refused_by_the_option_s_name(text: str) -> None:
    with pytest.raises(DecodeOptionError, match="valueSchema"):
        struct_type(text)
