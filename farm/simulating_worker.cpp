#include "farm/simulating_worker.hpp"

#include <chrono>

#include "core/sharing/bytes.hpp"
#include "farm/frame.hpp"
#include "farm/job_signature.hpp"
#include "farm/message.hpp"

namespace manyworlds::farm {

namespace {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;
using Kind = SimulatorReply::Kind;

std::string unfit(const std::string& reason) {
  return ByteWriter().put(Kind::unfit).text(reason).take();
}

std::string build(const JobFactory& factory, const std::string& frozen, std::unique_ptr<Job>& job) {
  try {
    job = factory(frozen);
    return ByteWriter().put(Kind::ready).put(job_signature(job->tasks())).take();
  } catch (const std::exception& error) {
    return unfit(error.what());
  }
}

std::string run(Job& job, ByteReader& request) {
  const auto task = request.get<std::uint32_t>();
  std::vector<std::string> inputs(request.count(sizeof(std::uint64_t)));
  for (auto& input : inputs) input = request.text();
  const Outcome outcome = run_guarded(job, task, inputs);
  return ByteWriter().put(Kind::computed).put(task).text(encode(outcome)).take();
}

}  // namespace

Outcome run_guarded(Job& job, std::uint32_t task, const std::vector<std::string>& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  try {
    outcome.bytes = job.run(task, inputs);
  } catch (const std::exception& error) {
    outcome = {Status::error, error.what(), 0};
  }
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  outcome.elapsed_us = std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count();
  return outcome;
}

std::string build_request(const std::string& frozen) {
  return ByteWriter().put('b').text(frozen).take();
}

std::string run_request(std::uint32_t task, const std::vector<std::string>& inputs) {
  ByteWriter to;
  to.put('r').put(task).put(static_cast<std::uint64_t>(inputs.size()));
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

void simulate(int socket, const JobFactory& factory) {
  std::unique_ptr<Job> job;
  while (const auto frame = read_frame(socket)) {
    ByteReader request(*frame);
    std::string reply;
    if (request.get<char>() == 'b') {
      reply = build(factory, request.text(), job);
    } else if (job) {
      reply = run(*job, request);
    } else {
      continue;  // its build failed and said so; what was already on its way is not ours to answer
    }
    if (!write_frame(socket, reply)) return;
  }
}

}  // namespace manyworlds::farm
