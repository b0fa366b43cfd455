"""Goal: administrators who ask for passwords hear that there are none, and not an error."""

from runnel.errors import ErrorCode
from runnel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.support.desk import Desk, at_desk


def test_no_user_has_a_password() -> None:
    async def test(desk: Desk) -> None:
        everybody = await desk.ask(DescribeUserScramCredentialsRequest(users=None))
        assert (everybody.error_code, everybody.results) == (ErrorCode.NONE, [])
        users = [UserName(name=name) for name in ("ada", "bob", "bob")]
        some = await desk.ask(DescribeUserScramCredentialsRequest(users=users))
        assert {row.user: row.error_code for row in some.results} == {
            "ada": ErrorCode.RESOURCE_NOT_FOUND,
            "bob": ErrorCode.DUPLICATE_RESOURCE,
        }
        assert [row.error_message[-3:] for row in some.results] == ["ada", "bob"]

    at_desk(test)
