#include "farm/worker/simulating_worker.hpp"

#include <chrono>

#include "core/sharing/bytes.hpp"
#include "farm/protocol/frame.hpp"
#include "farm/protocol/job_signature.hpp"
#include "farm/protocol/message.hpp"

namespace manyworlds::farm {

namespace {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;
using Kind = SimulatorReply::Kind;

std::string unfit(const std::string& reason) {
  return ByteWriter().put(Kind::unfit).text(reason).take();
}

std::string build(const JobKind& kind, const std::string& common, std::unique_ptr<Runner>& runner) {
  try {
    runner = kind.runner(common);
    return ByteWriter().put(Kind::ready).put(job_signature(common)).take();
  } catch (const std::exception& error) {
    return unfit(error.what());
  }
}

std::string run(Runner& runner, ByteReader& request) {
  const auto task = request.get<std::uint32_t>();
  const std::string order = request.text();
  std::vector<std::string> inputs(request.count(sizeof(std::uint64_t)));
  for (auto& input : inputs) input = request.text();
  const Outcome outcome = run_guarded(runner, order, inputs);
  return ByteWriter().put(Kind::computed).put(task).text(encode(outcome)).take();
}

}  // namespace

Outcome run_guarded(Runner& runner, const std::string& order, const std::vector<std::string>& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  try {
    outcome.bytes = runner.run(order, inputs);
  } catch (const std::exception& error) {
    outcome = {Status::error, error.what(), 0};
  }
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  outcome.elapsed_us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  return outcome;
}

std::string build_request(const std::string& common) {
  return ByteWriter().put('b').text(common).take();
}

std::string run_request(std::uint32_t task, const std::string& order, const std::vector<std::string>& inputs) {
  ByteWriter to;
  to.put('r').put(task).text(order).put(static_cast<std::uint64_t>(inputs.size()));
  for (const auto& input : inputs) to.text(input);
  return to.take();
}

SimulatorReply decode_reply(const std::string& frame) {
  ByteReader from(frame);
  SimulatorReply reply;
  reply.kind = from.get<Kind>();
  if (reply.kind == Kind::ready) {
    reply.signature = from.get<std::uint64_t>();
  } else if (reply.kind == Kind::unfit) {
    reply.outcome = {Status::environment, from.text(), 0};
  } else {
    reply.task = from.get<std::uint32_t>();
    reply.outcome = decode_outcome(from.text());
  }
  return reply;
}

void simulate(int socket, const JobKind& kind) {
  std::unique_ptr<Runner> runner;
  while (const auto frame = read_frame(socket)) {
    ByteReader request(*frame);
    std::string reply;
    if (request.get<char>() == 'b') {
      reply = build(kind, request.text(), runner);
    } else if (runner) {
      reply = run(*runner, request);
    } else {
      continue;  // its build failed and said so; what was already on its way is not ours to answer
    }
    if (!write_frame(socket, reply)) return;
  }
}

}  // namespace manyworlds::farm
