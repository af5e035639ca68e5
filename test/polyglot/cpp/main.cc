// Calls a running gateway with gRPC C++, as a program of another language does, and says what works.
//
//   polyglot 127.0.0.1:7433

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "toolgate/v1/errors.pb.h"
#include "toolgate/v1/tool_gateway_service.grpc.pb.h"

namespace v1 = toolgate::v1;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

std::unique_ptr<v1::ToolGatewayService::Stub> tools;

// Ends a check with what was found instead.
void expect(bool true_, const std::string& found) {
  if (!true_) throw std::runtime_error(found);
}

std::string text(const grpc::Status& status) {
  return std::to_string(status.error_code()) + " " + status.error_message();
}

void expect_code(const grpc::Status& status, grpc::StatusCode code) { expect(status.error_code() == code, text(status)); }

std::unique_ptr<grpc::ClientContext> context(milliseconds timeout = seconds(30)) {
  auto made = std::make_unique<grpc::ClientContext>();
  made->set_deadline(std::chrono::system_clock::now() + timeout);
  return made;
}

v1::Invocation invocation(const std::string& tool, const std::string& arguments) {
  v1::Invocation made;
  made.set_name(tool);
  made.set_arguments_json(arguments);
  return made;
}

grpc::Status call(grpc::ClientContext& context, const std::string& tool, const std::string& arguments, v1::CallResponse& answer) {
  v1::CallRequest request;
  *request.mutable_invocation() = invocation(tool, arguments);
  return tools->Call(&context, request, &answer);
}

// The status detail of one type; they come in the trailer grpc-status-details-bin.
template <typename Message>
Message detail(const grpc::Status& status) {
  google::rpc::Status details;
  expect(details.ParseFromString(status.error_details()), "details that cannot be read");
  expect(details.code() == status.error_code(), "details of another error");
  for (const auto& packed : details.details()) {
    Message message;
    if (packed.UnpackTo(&message)) return message;
  }
  throw std::runtime_error("no " + Message::descriptor()->full_name() + " in " + details.ShortDebugString());
}

void check_list() {
  std::vector<std::string> names;
  std::string token;
  do {
    v1::ListRequest request;
    request.set_page_size(3);
    request.set_page_token(token);
    v1::ListResponse page;
    const auto used = context();
    const auto status = tools->List(used.get(), request, &page);
    expect(status.ok(), text(status));
    for (const auto& tool : page.tools()) {
      expect(names.empty() || names.back() < tool.name(), tool.name() + " comes too late");
      names.push_back(tool.name());
    }
    token = page.next_page_token();
  } while (!token.empty());
  expect(names.size() >= 5, std::to_string(names.size()) + " tools");
}

void check_call() {
  const auto used = context();
  v1::CallResponse answer;
  const auto status = call(*used, "order_status", R"({"order_id":"SO20241001"})", answer);
  expect(status.ok(), text(status));
  expect(answer.result().structured_json().find("SF1234567890") != std::string::npos, answer.ShortDebugString());
  expect(!answer.call_id().empty() && answer.stats().attempts() == 1, answer.ShortDebugString());
}

void check_metadata() {
  const auto used = context();
  used->AddMetadata("x-tenant", "blue");
  used->AddMetadata("x-trace-bin", std::string("\0\xff\x80", 3));
  used->AddMetadata("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  v1::CallResponse answer;
  const auto status = call(*used, "order_status", R"({"order_id":"SO20241001"})", answer);
  expect(status.ok(), text(status));
  for (const auto* back : {&used->GetServerInitialMetadata(), &used->GetServerTrailingMetadata()}) {
    for (const auto* name : {"x-tenant", "x-trace-bin", "server", "x-powered-by"}) {
      expect(back->count(name) == 0, std::string("got back ") + name);
    }
  }
}

void check_not_found() {
  const auto used = context();
  v1::CallResponse answer;
  const auto status = call(*used, "ordr_status", "{}", answer);
  expect_code(status, grpc::StatusCode::NOT_FOUND);
  const auto info = detail<google::rpc::ErrorInfo>(status);
  expect(info.reason() == "TOOL_NOT_FOUND" && info.domain() == "toolgate", info.ShortDebugString());
  expect(info.ShortDebugString().find("order_status") != std::string::npos, info.ShortDebugString());
  const auto own = detail<v1::ToolErrorDetail>(status);
  expect(!own.model_message().empty() && own.effect() == v1::EFFECT_NONE, own.ShortDebugString());
}

void check_arguments() {
  const auto used = context();
  v1::CallResponse answer;
  const auto status = call(*used, "order_status", R"({"order_id":7})", answer);
  expect_code(status, grpc::StatusCode::INVALID_ARGUMENT);
  const auto bad = detail<google::rpc::BadRequest>(status);
  expect(bad.field_violations_size() == 1 && bad.field_violations(0).field() == "/order_id", bad.ShortDebugString());
}

void check_stream() {
  const auto used = context();
  v1::CallStreamRequest request;
  *request.mutable_invocation() = invocation("import_progress", R"({"import_id":"IM-7","steps":4})");
  const auto stream = tools->CallStream(used.get(), request);
  std::vector<v1::CallStreamResponse> events;
  for (v1::CallStreamResponse event; stream->Read(&event);) {
    expect(event.sequence() == events.size(), event.ShortDebugString());
    events.push_back(event);
  }
  const auto status = stream->Finish();
  expect(status.ok(), text(status));
  expect(events.size() >= 4 && events.front().has_started() && events.back().has_completed(), std::to_string(events.size()));
}

void check_cancel() {
  const auto used = context();
  v1::CallStreamRequest request;
  *request.mutable_invocation() = invocation("log_tail", R"({"service":"orders"})");
  const auto stream = tools->CallStream(used.get(), request);
  v1::CallStreamResponse event;
  expect(stream->Read(&event), "nothing to read");
  const auto start = Clock::now();
  used->TryCancel();
  while (stream->Read(&event)) {
  }
  expect_code(stream->Finish(), grpc::StatusCode::CANCELLED);
  expect(Clock::now() - start < seconds(5), "too late");
}

void check_deadline() {
  const auto used = context(milliseconds(500));
  v1::CallResponse answer;
  const auto start = Clock::now();
  expect_code(call(*used, "slow_report", R"({"month":"2024-10","seconds":20})", answer), grpc::StatusCode::DEADLINE_EXCEEDED);
  expect(Clock::now() - start < seconds(5), "too late");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: polyglot HOST:PORT\n";
    return 2;
  }
  tools = v1::ToolGatewayService::NewStub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  const std::vector<std::pair<std::string, std::function<void()>>> checks = {
      {"List pages through the tools in order", check_list},
      {"Call returns a structured result", check_call},
      {"text and binary metadata are taken, and what comes back is the protocol's alone", check_metadata},
      {"an unknown tool is NOT_FOUND with the nearest name in its details", check_not_found},
      {"wrong arguments are INVALID_ARGUMENT with a JSON pointer", check_arguments},
      {"CallStream begins with started, has no gaps and ends with completed", check_stream},
      {"cancel ends a stream at once", check_cancel},
      {"the deadline ends a slow call", check_deadline},
  };
  int failed = 0;
  for (const auto& [name, run] : checks) {
    try {
      run();
      std::cout << "ok     " << name << "\n";
    } catch (const std::exception& error) {
      failed++;
      std::cout << "FAILED " << name << ": " << error.what() << "\n";
    }
  }
  std::cout << "cpp: " << checks.size() - failed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}
