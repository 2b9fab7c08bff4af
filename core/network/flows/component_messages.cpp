#include "core/network/flows/component_messages.hpp"

#include <algorithm>
#include <utility>

#include <xxhash.h>

#include "core/base/error.hpp"
#include "core/sharing/bytes.hpp"

namespace manyworlds::core::network {
namespace {

using sharing::ByteReader;
using sharing::ByteWriter;

std::string with_checksum(std::string bytes) {
  return ByteWriter().put(static_cast<std::uint64_t>(XXH3_64bits(bytes.data(), bytes.size()))).take() + bytes;
}

/// Returns a reader behind the checksum.
ByteReader checked(const std::string& bytes) {
  ByteReader reader(bytes);
  const auto checksum = reader.get<std::uint64_t>();
  MANYWORLDS_CHECK(checksum == XXH3_64bits(bytes.data() + sizeof checksum, bytes.size() - sizeof checksum),
                   "{} bytes about a component are damaged", bytes.size());
  return reader;
}

template <sharing::Plain T>
void put(ByteWriter& writer, const std::vector<T>& values) {
  writer.integer(std::ssize(values));
  for (const T value : values) writer.put(value);
}

template <sharing::Plain T>
std::vector<T> list(ByteReader& reader) {
  std::vector<T> values(reader.count(sizeof(T)));
  for (T& value : values) value = reader.get<T>();
  return values;
}

void put(ByteWriter& writer, const OptionSet& options) {
  writer.integer(std::ssize(options));
  for (const auto& [name, value] : options) {
    writer.text(name).put(static_cast<std::uint8_t>(value.index()));
    std::visit(
        [&](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
            writer.text(held);
          else
            writer.put(held);
        },
        value);
  }
}

OptionValue option_value(ByteReader& reader) {
  switch (const auto index = reader.get<std::uint8_t>(); index) {
    case 0:
      return reader.get<std::uint8_t>() != 0;
    case 1:
      return reader.integer();
    case 2:
      return reader.real();
    case 3:
      return reader.text();
    default:
      MANYWORLDS_CHECK(false, "an option of kind {}", index);
  }
}

OptionSet options(ByteReader& reader) {
  OptionSet read;
  for (std::size_t left = reader.count(sizeof(std::int64_t) + 2); left > 0; --left) {
    std::string name = reader.text();
    MANYWORLDS_CHECK(read.empty() || read.rbegin()->first < name, "option {} out of order", name);
    OptionValue value = option_value(reader);
    read.emplace_hint(read.end(), std::move(name), std::move(value));
  }
  return read;
}

/// Visits every field of a transport; one more of them does not compile before it is here.
template <class Fields, class Visit>
void visit_fields(Fields& transport, const Visit& visit) {
  auto& [fidelity, kind, kind_options, routing, ecmp_hash_seeds, ecmp_weights, acks, fabric, payload_bytes,
         header_bytes, ack_bytes, window_bytes, pfc_xoff_bytes, pfc_xon_bytes, buffer_bytes, ecn_kmin_bytes,
         ecn_kmax_bytes, ecn_pmax_ppm, queue_bytes, seed, rate_tolerance_ppm] = transport;
  const auto each = [&](auto&... fields) { (visit(fields), ...); };
  each(fidelity, kind, kind_options, routing, ecmp_hash_seeds, ecmp_weights, acks, fabric, payload_bytes, header_bytes,
       ack_bytes, window_bytes, pfc_xoff_bytes, pfc_xon_bytes, buffer_bytes, ecn_kmin_bytes, ecn_kmax_bytes,
       ecn_pmax_ppm, queue_bytes, seed, rate_tolerance_ppm);
}

void put(ByteWriter& writer, const Transport& transport) {
  visit_fields(transport, [&](const auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>)
      writer.text(field);
    else if constexpr (std::is_same_v<Field, OptionSet>)
      put(writer, field);
    else
      writer.put(field);
  });
}

Transport transport(ByteReader& reader) {
  Transport read;
  visit_fields(read, [&](auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>)
      field = reader.text();
    else if constexpr (std::is_same_v<Field, OptionSet>)
      field = options(reader);
    else
      field = reader.get<Field>();
  });
  return read;
}

template <class Visit>
void visit_counters(auto& counters, const Visit& visit) {
  auto& [link_hops, ecn_marks, pauses, drops, trims, retransmissions, lost] = counters;
  for (auto* field : {&link_hops, &ecn_marks, &pauses, &drops, &trims, &retransmissions, &lost}) visit(*field);
}

/// Every waiting pair of links is two numbers.
std::vector<std::uint32_t> flat(const PauseDependencies& waits) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [paused, holder] : waits) numbers.insert(numbers.end(), {paused, holder});
  return numbers;
}

PauseDependencies pairs(const std::vector<std::uint32_t>& numbers) {
  MANYWORLDS_CHECK(numbers.size() % 2 == 0, "{} numbers of pairs", numbers.size());
  PauseDependencies waits;
  for (std::size_t i = 0; i < numbers.size(); i += 2) waits.emplace_back(numbers[i], numbers[i + 1]);
  return waits;
}

void put(ByteWriter& writer, const Outcome& outcome) {
  writer.integer(outcome.elapsed);
  put(writer, outcome.completed);
  put(writer, flat(outcome.deadlock));
  visit_counters(outcome.counters, [&](std::int64_t field) { writer.integer(field); });
  writer.integer(std::ssize(outcome.parts));
  for (const Outcome::Part& part : outcome.parts) {
    writer.integer(part.state->least_ps);
    put(writer, part.state->words);
    put(writer, part.flows);
    put(writer, part.links);
  }
}

Outcome outcome(ByteReader& reader) {
  Outcome read;
  read.elapsed = reader.integer();
  read.completed = list<std::uint32_t>(reader);
  read.deadlock = pairs(list<std::uint32_t>(reader));
  visit_counters(read.counters, [&](std::int64_t& field) { field = reader.integer(); });
  read.parts.resize(reader.count(4 * sizeof(std::int64_t)));
  for (Outcome::Part& part : read.parts) {
    ComponentState state;
    state.least_ps = reader.integer();
    state.words = list<std::uint64_t>(reader);
    part.state = make_state(std::move(state));
    part.flows = list<std::uint32_t>(reader);
    part.links = list<std::uint32_t>(reader);
  }
  return read;
}

}  // namespace

std::string encode(const ComponentQuestion& question) {
  ByteWriter writer;
  put(writer, question.transport);
  writer.put(static_cast<std::uint8_t>(question.periods));
  put(writer, question.words);
  return with_checksum(writer.take());
}

ComponentQuestion decode_question(const std::string& bytes) {
  ByteReader reader = checked(bytes);
  ComponentQuestion question;
  question.transport = transport(reader);
  question.periods = reader.get<std::uint8_t>() != 0;
  question.words = list<std::uint64_t>(reader);
  reader.end();
  return question;
}

std::string encode(const ComponentAnswer& answer) {
  ByteWriter writer;
  writer.put(answer.digest[0]).put(answer.digest[1]);
  const LinkHops& hops = answer.simulated.link_hops;
  writer.integer(hops.simulated).integer(hops.periods).integer(hops.rate);
  put(writer, *answer.simulated.outcome);
  return with_checksum(writer.take());
}

ComponentAnswer decode_answer(const std::string& bytes) {
  ByteReader reader = checked(bytes);
  ComponentAnswer answer;
  for (std::uint64_t& half : answer.digest) half = reader.get<std::uint64_t>();
  for (std::int64_t* hops :
       {&answer.simulated.link_hops.simulated, &answer.simulated.link_hops.periods, &answer.simulated.link_hops.rate})
    *hops = reader.integer();
  answer.simulated.outcome = std::make_shared<const Outcome>(outcome(reader));
  reader.end();
  return answer;
}

}  // namespace manyworlds::core::network
