#include "farm/protocol/message.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::farm {

namespace {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;

void put(ByteWriter& to, const std::vector<std::uint32_t>& numbers) {
  to.put(static_cast<std::uint64_t>(numbers.size()));
  for (const auto number : numbers) to.put(number);
}

std::vector<std::uint32_t> numbers(ByteReader& from) {
  std::vector<std::uint32_t> all(from.count(sizeof(std::uint32_t)));
  for (auto& number : all) number = from.get<std::uint32_t>();
  return all;
}

void put(ByteWriter& to, const Outcome& outcome) {
  to.put(outcome.status).put(outcome.tries).put(outcome.elapsed_us).text(outcome.bytes);
}

Outcome outcome(ByteReader& from) {
  Outcome got;
  got.status = from.get<Status>();
  MANYWORLDS_CHECK(got.status <= Status::input, "status {}", static_cast<int>(got.status));
  got.tries = from.get<std::uint8_t>();
  got.elapsed_us = from.get<std::int64_t>();
  got.bytes = from.text();
  return got;
}

}  // namespace

std::string encode(const Message& message) {
  ByteWriter to;
  to.put(message.kind).put(message.flag).put(message.number);
  put(to, message.tasks);
  to.put(static_cast<std::uint64_t>(message.assignments.size()));
  for (const auto& assignment : message.assignments) {
    to.put(assignment.task);
    put(to, assignment.inputs);
    to.text(assignment.order);
  }
  to.put(static_cast<std::uint64_t>(message.results.size()));
  for (const auto& [task, result] : message.results) {
    to.put(task);
    put(to, result);
  }
  to.text(message.text);
  return to.take();
}

Message decode_message(const std::string& bytes) {
  ByteReader from(bytes);
  Message message;
  message.kind = from.get<MessageKind>();
  MANYWORLDS_CHECK(message.kind <= MessageKind::leave, "message kind {}", static_cast<int>(message.kind));
  message.flag = from.get<std::uint8_t>() != 0;
  message.number = from.get<std::uint64_t>();
  message.tasks = numbers(from);
  message.assignments.resize(from.count(20));
  for (auto& assignment : message.assignments) {
    assignment.task = from.get<std::uint32_t>();
    assignment.inputs = numbers(from);
    assignment.order = from.text();
  }
  message.results.resize(from.count(22));
  for (auto& [task, result] : message.results) {
    task = from.get<std::uint32_t>();
    result = outcome(from);
  }
  message.text = from.text();
  from.end();
  return message;
}

std::string encode(const Outcome& result) {
  ByteWriter to;
  put(to, result);
  return to.take();
}

Outcome decode_outcome(const std::string& bytes) {
  ByteReader from(bytes);
  Outcome got = outcome(from);
  from.end();
  return got;
}

}  // namespace manyworlds::farm
