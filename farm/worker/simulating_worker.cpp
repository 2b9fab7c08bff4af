#include "farm/worker/simulating_worker.hpp"

#include <chrono>
#include <deque>
#include <optional>

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

/// The processes that the rank knows, behind the socket. What else arrives while it listens is for later.
class AskedRanks final : public core::RemoteHelpers {
 public:
  explicit AskedRanks(int socket) : socket_(socket), frames_(socket) {}

  std::size_t listen(const std::function<void(std::uint64_t, const std::string&)>& take) override {
    while (const auto frame = frames_.poll())
      if (!take_notice(*frame, take)) later_.push_back(*frame);
    return places_;
  }
  void ask(std::uint64_t number, const std::string& question) override {
    // If the rank is gone, the next read shows it.
    write_frame(socket_, ByteWriter().put(Kind::asks).put(number).put(asker_->answers_used()).text(question).take());
  }
  /// Names the runner that will ask, which is not asking yet.
  void ask_for(const Runner& runner) { asker_ = &runner; }

  /// Blocks until a request has arrived. Returns nullopt if the peer closed the socket.
  std::optional<std::string> next_request() {
    if (!later_.empty()) {
      std::string first = std::move(later_.front());
      later_.pop_front();
      return first;
    }
    for (;;) {
      auto frame = frames_.read();
      if (!frame || !take_notice(*frame, [](std::uint64_t, const std::string&) {})) return frame;
    }
  }

 private:
  bool take_notice(const std::string& frame, const std::function<void(std::uint64_t, const std::string&)>& take) {
    ByteReader notice(frame);
    const auto kind = notice.get<char>();
    if (kind == 'a') {
      const auto number = notice.get<std::uint64_t>();
      take(number, notice.text());
    } else if (kind == 'p') {
      places_ = notice.get<std::uint64_t>();
    }
    return kind == 'a' || kind == 'p';
  }

  int socket_;
  FrameReader frames_;
  std::deque<std::string> later_;
  std::size_t places_ = 0;
  const Runner* asker_ = nullptr;
};

std::string build(const JobKind& kind, ByteReader& request, AskedRanks& ranks, std::unique_ptr<Runner>& runner) {
  try {
    const std::string common_spec = request.text();
    RunnerOptions options;
    options.threads = request.get<std::uint64_t>();
    if (request.get<std::uint8_t>() != 0) options.remote = &ranks;
    options.components = request.text();
    runner = kind.runner(common_spec, options);
    ranks.ask_for(*runner);
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
  return ByteWriter().put(Kind::computed).put(task).put(runner.answers_used()).text(encode(outcome)).take();
}

std::string help(Runner* runner, ByteReader& request) {
  const auto number = request.get<std::uint64_t>();
  const std::string question = request.text();
  const auto begin = std::chrono::steady_clock::now();
  std::string answer;
  try {
    if (runner != nullptr) answer = runner->answer(question);
  } catch (const std::exception&) {  // the other process does it itself, and sees the same
  }
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  const auto elapsed_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  return ByteWriter().put(Kind::helped).put(number).put(elapsed_us).text(answer).take();
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

std::string build_request(const std::string& common_spec, const BuildOptions& options) {
  return ByteWriter()
      .put('b')
      .text(common_spec)
      .put(static_cast<std::uint64_t>(options.threads))
      .put(static_cast<std::uint8_t>(options.may_ask))
      .text(options.components)
      .take();
}

std::string help_request(std::uint64_t number, const std::string& question) {
  return ByteWriter().put('h').put(number).text(question).take();
}

std::string answer_notice(std::uint64_t number, const std::string& answer) {
  return ByteWriter().put('a').put(number).text(answer).take();
}

std::string places_notice(std::uint64_t places) {
  return ByteWriter().put('p').put(places).take();
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
  } else if (reply.kind == Kind::asks) {
    reply.number = reader.get<std::uint64_t>();
    reply.used = reader.get<std::uint64_t>();
    reply.text = reader.text();
  } else if (reply.kind == Kind::helped) {
    reply.number = reader.get<std::uint64_t>();
    reply.helped_us = reader.get<std::uint64_t>();
    reply.text = reader.text();
  } else {
    reply.task = reader.get<std::uint32_t>();
    reply.used = reader.get<std::uint64_t>();
    reply.outcome = decode_outcome(reader.text());
  }
  return reply;
}

void simulate(int socket, const JobKind& kind) {
  AskedRanks ranks(socket);
  std::unique_ptr<Runner> runner;
  while (const auto frame = ranks.next_request()) {
    ByteReader request(*frame);
    std::string reply;
    const auto action = request.get<char>();
    if (action == 'b') {
      reply = build(kind, request, ranks, runner);
    } else if (action == 'h') {
      reply = help(runner.get(), request);
    } else if (runner) {
      reply = run(*runner, request);
    } else {
      continue;  // The build failed and was reported; no answer is due to requests that were already in flight.
    }
    if (!write_frame(socket, reply)) return;
  }
}

}  // namespace manyworlds::farm
