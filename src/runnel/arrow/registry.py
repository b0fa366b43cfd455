"""Schemas of a registry with Confluent's interface, each asked for once per process.

A framed value begins with a zero byte and the id of its schema as four bytes, the highest first.
"""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Final

from runnel.arrow.decoding import DecodeOptionError

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
NOT_FOUND: Final = 404
TIMEOUT_S: Final = 10.0
ANSWER_BYTES_MAX: Final = 4 << 20
SCHEMAS_MAX: Final = 10_000  # kept per process; a topic has a handful
_by_id: Final[dict[tuple[str, int], str]] = {}


class RegistryError(Exception):
    """The registry does not answer, or does not have the schema; the message names both."""


class NoSchemaError(RegistryError):
    """The registry answers, and has no Avro schema of that id or subject."""


def schema_by_id(url: str, schema_id: int) -> str:
    """The text of an Avro schema. Raises RegistryError."""
    known = _by_id.get((url, schema_id))
    if known is None:
        known = _avro(_asked(url, f"schemas/ids/{schema_id}"), f"schema {schema_id}")
        if len(_by_id) >= SCHEMAS_MAX:
            _by_id.clear()
        _by_id[url, schema_id] = known
    return known


def latest_schema(url: str, subject: str) -> str:
    """That of the subject's newest version. Raises RegistryError."""
    return _avro(_latest(url, subject), f"subject {subject}")


def latest_of(url: str, subject: str) -> tuple[str, str]:
    """Of whatever kind (AVRO, JSON, PROTOBUF), and its text. Raises RegistryError."""
    answer = _latest(url, subject)
    if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
        raise RegistryError(f"subject {subject} of the registry has no schema")
    return str(answer.get("schemaType", "AVRO")), str(answer["schema"])


def _latest(url: str, subject: str) -> Any:  # noqa: ANN401  # of JSON
    name = urllib.parse.quote(subject, safe="")
    return _asked(url, f"subjects/{name}/versions/latest")


def _avro(answer: Any, what: str) -> str:  # noqa: ANN401  # of JSON
    kind = answer.get("schemaType", "AVRO") if isinstance(answer, dict) else None
    if kind != "AVRO" or not isinstance(answer.get("schema"), str):
        raise NoSchemaError(f"{what} of the registry is {kind or 'nothing'}, not AVRO")
    return str(answer["schema"])


def _asked(url: str, path: str) -> Any:  # noqa: ANN401  # of JSON
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DecodeOptionError("schemaRegistry: write a URL such as http://localhost:8081")
    place = parts.netloc.rpartition("@")[2]  # without the password
    base = parts._replace(netloc=place, path=parts.path.rstrip("/") + "/" + path).geturl()
    request = urllib.request.Request(base, headers={"Accept": "application/json"})
    if parts.username is not None:
        names = (urllib.parse.unquote(text or "") for text in (parts.username, parts.password))
        token = base64.b64encode(":".join(names).encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return json.loads(response.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        kind = NoSchemaError if error.code == NOT_FOUND else RegistryError
        with error:
            raise kind(f"the registry at {place} answers {error.code} to {path}") from None
    except (OSError, ValueError) as error:
        raise RegistryError(
            f"the registry at {place} does not answer ({error}); check schemaRegistry"
        ) from None
