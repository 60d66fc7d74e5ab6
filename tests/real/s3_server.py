"""An S3 server for the tests: Moto's, which checks the signatures and rights of two users, until SIGTERM.

Arguments: port and name of the bucket that is there from the start. Both keys are examples of Amazon's documentation; the
first may do everything, the second may only list.
"""

import json
import os
import signal
import sys

ACCOUNT = "123456789012"
USERS = [
    ("writer", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "s3:*"),
    ("lister", "AKIAI44QH8DHBEXAMPLE", "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY", "s3:List*"),
]


def main() -> None:
    port, bucket = int(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # Both are read when Moto is imported: every request is checked, and every key belongs to this account.
    os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"
    os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT

    from moto.iam.models import iam_backends
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.s3.models import s3_backends
    from werkzeug.serving import run_simple

    users = iam_backends[ACCOUNT]["aws"]
    for name, key, secret, action in USERS:
        users.create_user("us-east-1", name)
        access_key = users.create_access_key(name)
        access_key.access_key_id, access_key.secret_access_key = key, secret
        statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
        users.put_user_policy(name, "all", json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3_backends[ACCOUNT]["aws"].create_bucket(bucket, "us-east-1")
    run_simple("127.0.0.1", port, DomainDispatcherApplication(create_backend_app), threaded=True)


if __name__ == "__main__":
    main()
