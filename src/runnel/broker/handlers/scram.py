"""DescribeUserScramCredentials (key 50, v0): which users have a password, and how it is hashed.

No user has one, because no listener asks for it yet; `kafka-configs --entity-type users` asks here
for every user whose quotas it describes.
"""

from collections import Counter
from typing import Final

from runnel.broker.context import RequestContext, Services
from runnel.errors import ErrorCode
from runnel.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

TWICE: Final = "Cannot describe SCRAM credentials for the same user twice in a single request: "
NONE: Final = "Attempt to describe a user credential that does not exist: "


def describe_user_scram_credentials(
    _context: RequestContext, _services: Services, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    named = Counter(user.name for user in request.users or [])
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=ErrorCode.RESOURCE_NOT_FOUND
                if count == 1
                else ErrorCode.DUPLICATE_RESOURCE,
                error_message=(NONE if count == 1 else TWICE) + name,
            )
            for name, count in named.items()
        ],
    )
