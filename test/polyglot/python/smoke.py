"""Calls a running gateway with grpcio, as a program of another language does, and says what works.

    PYTHONPATH=<generated code> python3 smoke.py 127.0.0.1:7433
"""

import contextlib
import http.server
import json
import sys
import threading
import time

import grpc
from google.rpc import error_details_pb2, status_pb2
from health.v1 import health_pb2, health_pb2_grpc
from toolgate.v1 import call_pb2, errors_pb2, tool_gateway_service_pb2, tool_gateway_service_pb2_grpc

TIMEOUT_S = 30


def invocation(tool, arguments):
    return call_pb2.Invocation(name=tool, arguments_json=json.dumps(arguments))


class Gateway:
    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.tools = tool_gateway_service_pb2_grpc.ToolGatewayServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def call(self, tool, arguments, timeout=TIMEOUT_S):
        request = tool_gateway_service_pb2.CallRequest(invocation=invocation(tool, arguments))
        return self.tools.Call(request, timeout=timeout)

    def call_stream(self, tool, arguments):
        request = tool_gateway_service_pb2.CallStreamRequest(invocation=invocation(tool, arguments))
        return self.tools.CallStream(request, timeout=TIMEOUT_S)


def rpc_error(run):
    """The error that an RPC ends with."""
    try:
        result = run()
    except grpc.RpcError as error:
        return error
    raise AssertionError(f"expected an error, got {result}")


def detail(error, message_type):
    """The status detail of one type."""
    trailers = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    for packed in status.details:
        message = message_type()
        if packed.Unpack(message):
            return message
    raise AssertionError(f"no {message_type.DESCRIPTOR.full_name} in {status}")


def check_health(gateway):
    """health is SERVING"""
    answer = gateway.health.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING, answer


def check_list(gateway):
    """List pages through the tools in order"""
    names, token = [], ""
    while True:
        request = tool_gateway_service_pb2.ListRequest(page_size=3, page_token=token)
        page = gateway.tools.List(request, timeout=TIMEOUT_S)
        names += [tool.name for tool in page.tools]
        token = page.next_page_token
        if token == "":
            break
    assert names == sorted(set(names)) and "order_status" in names and len(names) >= 5, names


def check_call(gateway):
    """Call returns a structured result"""
    answer = gateway.call("order_status", {"order_id": "SO20241001"})
    assert not answer.result.HasField("failure"), answer
    assert isinstance(json.loads(answer.result.structured_json), dict), answer
    assert answer.call_id != "" and answer.stats.attempts == 1, answer


def check_metadata(gateway):
    """text and binary metadata are taken, and what comes back is the protocol's alone"""
    request = tool_gateway_service_pb2.CallRequest(invocation=invocation("order_status", {"order_id": "SO20241001"}))
    sent = (("x-tenant", "blue"), ("x-trace-bin", b"\x00\xff\x80"))
    answer, call = gateway.tools.Call.with_call(request, timeout=TIMEOUT_S, metadata=sent)
    assert answer.call_id != "", answer
    back = {key for key, _ in (*call.initial_metadata(), *call.trailing_metadata())}
    assert not back & {"x-tenant", "x-trace-bin", "server", "x-powered-by"}, back


def check_large(gateway):
    """a result of 5 MiB comes cut and marked within the default limit, and whole as a stream"""
    text = b"0123456789abcde\n" * (5 * 2**16)
    with large_upstream(text) as port:
        for delivery in ("conclusive", "incremental"):
            declaration = (
                f"name: large_{delivery}\ndescription: 返回很长的文本 gives a very long text\ntype: http\nmethod: GET\n"
                f"endpoint: http://127.0.0.1:{port}/\ndelivery: {delivery}\n"
            )
            request = tool_gateway_service_pb2.RegisterRequest(declaration_yaml=declaration)
            gateway.tools.Register(request, timeout=TIMEOUT_S)
        answer = gateway.call("large_conclusive", {})
        assert answer.result.truncation.original_length == len(text), answer.result.truncation
        assert answer.ByteSize() < 4 * 2**20, answer.ByteSize()
        pieces = [event.output.text for event in gateway.call_stream("large_incremental", {}) if event.HasField("output")]
        assert "".join(pieces).encode() == text, len(pieces)
        assert max(map(len, pieces)) < 2**20, len(pieces)
        for delivery in ("conclusive", "incremental"):
            name = tool_gateway_service_pb2.UnregisterRequest(name=f"large_{delivery}")
            gateway.tools.Unregister(name, timeout=TIMEOUT_S)


@contextlib.contextmanager
def large_upstream(text):
    """Serves one text on a free port of loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/plain; charset=utf-8")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def check_failure(gateway):
    """a tool that says no is an answer, not an error"""
    answer = gateway.call("order_status", {"order_id": "NO-SUCH-ORDER"})
    assert answer.result.failure.reason == "TOOL_FAILED", answer


def check_not_found(gateway):
    """an unknown tool is NOT_FOUND with the nearest name in its details"""
    error = rpc_error(lambda: gateway.call("ordr_status", {}))
    assert error.code() == grpc.StatusCode.NOT_FOUND, error
    info = detail(error, error_details_pb2.ErrorInfo)
    assert (info.reason, info.domain) == ("TOOL_NOT_FOUND", "toolgate"), info
    assert "order_status" in str(info.metadata), info
    own = detail(error, errors_pb2.ToolErrorDetail)
    assert own.model_message != "" and own.effect == errors_pb2.EFFECT_NONE, own


def check_arguments(gateway):
    """wrong arguments are INVALID_ARGUMENT with a JSON pointer"""
    error = rpc_error(lambda: gateway.call("order_status", {"order_id": 7}))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, error
    bad = detail(error, error_details_pb2.BadRequest)
    assert [violation.field for violation in bad.field_violations] == ["/order_id"], bad


def check_stream(gateway):
    """CallStream begins with started, has no gaps and ends with completed"""
    events = list(gateway.call_stream("import_progress", {"import_id": "IM-7", "steps": 4}))
    assert [event.sequence for event in events] == list(range(len(events))), events
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[0] == "started" and kinds[-1] == "completed" and "output" in kinds, kinds


def check_cancel(gateway):
    """cancel ends a stream at once"""
    stream = gateway.call_stream("log_tail", {"service": "orders"})
    next(stream)
    start = time.monotonic()
    stream.cancel()
    error = rpc_error(lambda: list(stream))
    assert error.code() == grpc.StatusCode.CANCELLED, error
    assert time.monotonic() - start < 5, "too late"
    check_health(gateway)


def check_deadline(gateway):
    """the deadline ends a slow call"""
    start = time.monotonic()
    error = rpc_error(lambda: gateway.call("slow_report", {"month": "2024-10", "seconds": 20}, timeout=0.5))
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    assert time.monotonic() - start < 5, "too late"


CHECKS = [
    check_health,
    check_list,
    check_call,
    check_metadata,
    check_large,
    check_failure,
    check_not_found,
    check_arguments,
    check_stream,
    check_cancel,
    check_deadline,
]


def main(address):
    gateway = Gateway(address)
    failed = 0
    for check in CHECKS:
        try:
            check(gateway)
            print(f"ok     {check.__doc__}")
        except (AssertionError, grpc.RpcError, KeyError, StopIteration) as error:
            failed += 1
            print(f"FAILED {check.__doc__}: {error!r}")
    print(f"python: {len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
