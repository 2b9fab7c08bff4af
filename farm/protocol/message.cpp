#include "farm/protocol/message.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::farm {

namespace {

using core::sharing::ByteReader;
using core::sharing::ByteWriter;

void put(ByteWriter& writer, const std::vector<std::uint32_t>& numbers) {
  writer.put(static_cast<std::uint64_t>(numbers.size()));
  for (const auto number : numbers) writer.put(number);
}

std::vector<std::uint32_t> numbers(ByteReader& reader) {
  std::vector<std::uint32_t> all(reader.count(sizeof(std::uint32_t)));
  for (auto& number : all) number = reader.get<std::uint32_t>();
  return all;
}

void put(ByteWriter& writer, const Outcome& outcome) {
  writer.put(outcome.status).put(outcome.max_failures).put(outcome.elapsed_us).text(outcome.bytes);
}

Outcome outcome(ByteReader& reader) {
  Outcome decoded;
  decoded.status = reader.get<Status>();
  MANYWORLDS_CHECK(decoded.status <= Status::input, "status {}", static_cast<int>(decoded.status));
  decoded.max_failures = reader.get<std::uint8_t>();
  decoded.elapsed_us = reader.get<std::int64_t>();
  decoded.bytes = reader.text();
  return decoded;
}

}  // namespace

std::string encode(const Message& message) {
  ByteWriter writer;
  writer.put(message.kind).put(message.flag).put(message.number);
  put(writer, message.tasks);
  writer.put(static_cast<std::uint64_t>(message.assignments.size()));
  for (const auto& assignment : message.assignments) {
    writer.put(assignment.task);
    put(writer, assignment.inputs);
    writer.text(assignment.spec);
  }
  writer.put(static_cast<std::uint64_t>(message.results.size()));
  for (const auto& [task, result] : message.results) {
    writer.put(task);
    put(writer, result);
  }
  put(writer, message.ranks);
  writer.put(message.help.given).put(message.help.given_us).put(message.help.used);
  writer.text(message.text);
  return writer.take();
}

Message decode_message(const std::string& bytes) {
  ByteReader reader(bytes);
  Message message;
  message.kind = reader.get<MessageKind>();
  MANYWORLDS_CHECK(message.kind <= MessageKind::answer, "message kind {}", static_cast<int>(message.kind));
  message.flag = reader.get<std::uint8_t>() != 0;
  message.number = reader.get<std::uint64_t>();
  message.tasks = numbers(reader);
  message.assignments.resize(reader.count(20));
  for (auto& assignment : message.assignments) {
    assignment.task = reader.get<std::uint32_t>();
    assignment.inputs = numbers(reader);
    assignment.spec = reader.text();
  }
  message.results.resize(reader.count(22));
  for (auto& [task, result] : message.results) {
    task = reader.get<std::uint32_t>();
    result = outcome(reader);
  }
  message.ranks = numbers(reader);
  for (std::uint64_t* count : {&message.help.given, &message.help.given_us, &message.help.used})
    *count = reader.get<std::uint64_t>();
  message.text = reader.text();
  reader.end();
  return message;
}

std::string encode(const Outcome& result) {
  ByteWriter writer;
  put(writer, result);
  return writer.take();
}

Outcome decode_outcome(const std::string& bytes) {
  ByteReader reader(bytes);
  Outcome decoded = outcome(reader);
  reader.end();
  return decoded;
}

}  // namespace manyworlds::farm
