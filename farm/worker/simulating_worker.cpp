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

std::string incompatible(const std::string& reason) {
  return ByteWriter().put(Kind::incompatible).text(reason).take();
}

std::string build(const JobKind& kind, const std::string& common_spec, std::unique_ptr<Runner>& runner) {
  try {
    runner = kind.runner(common_spec);
    return ByteWriter().put(Kind::ready).put(job_signature(common_spec)).take();
  } catch (const std::exception& error) {
    return incompatible(error.what());
  }
}

std::string run(Runner& runner, ByteReader& request) {
  const auto task = request.get<std::uint32_t>();
  const std::string spec = request.text();
  std::vector<std::string> inputs(request.count(sizeof(std::uint64_t)));
  for (auto& input : inputs) input = request.text();
  const Outcome outcome = run_guarded(runner, spec, inputs);
  return ByteWriter().put(Kind::computed).put(task).text(encode(outcome)).take();
}

}  // namespace

Outcome run_guarded(Runner& runner, const std::string& spec, const std::vector<std::string>& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  try {
    outcome.bytes = runner.run(spec, inputs);
  } catch (const std::exception& error) {
    outcome = {Status::error, error.what(), 0};
  }
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  outcome.elapsed_us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  return outcome;
}

std::string build_request(const std::string& common_spec) {
  return ByteWriter().put('b').text(common_spec).take();
}

std::string run_request(std::uint32_t task, const std::string& spec, const std::vector<std::string>& inputs) {
  ByteWriter writer;
  writer.put('r').put(task).text(spec).put(static_cast<std::uint64_t>(inputs.size()));
  for (const auto& input : inputs) writer.text(input);
  return writer.take();
}

SimulatorReply decode_reply(const std::string& frame) {
  ByteReader reader(frame);
  SimulatorReply reply;
  reply.kind = reader.get<Kind>();
  if (reply.kind == Kind::ready) {
    reply.signature = reader.get<std::uint64_t>();
  } else if (reply.kind == Kind::incompatible) {
    reply.outcome = {Status::environment, reader.text(), 0};
  } else {
    reply.task = reader.get<std::uint32_t>();
    reply.outcome = decode_outcome(reader.text());
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
      continue;  // The build failed and was reported; no answer is due to requests that were already in flight.
    }
    if (!write_frame(socket, reply)) return;
  }
}

}  // namespace manyworlds::farm
