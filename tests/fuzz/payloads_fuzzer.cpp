// Any bytes as what a record of a journal or store holds (a step, a collective, a failure), and as what ranks tell each
// other: messages, and questions and answers about components. They are read or refused, in no more memory than they
// are worth, and what is read is written as the same bytes.
#include <xxhash.h>

#include "core/base/error.hpp"
#include "core/network/flows/component_messages.hpp"
#include "core/sharing/bytes.hpp"
#include "core/step/run/result.hpp"
#include "farm/plan/collective_result.hpp"
#include "farm/protocol/message.hpp"
#include "farm/status/tasks_by_key.hpp"
#include "tests/fuzz/work_folder.hpp"

using namespace manyworlds;

namespace {

template <class Decode>
void read_or_refuse(const std::string& bytes, Decode decode) {
  try {
    const auto read = decode(bytes);
    // A flag of a step is any number but 0 for true, so bytes may differ once.
    const std::string written = encode(read);
    fuzz::require(written.size() == bytes.size() && encode(decode(written)) == written);
  } catch (const core::InternalError&) {
  }
}

/// Begins like a result, so that counts are not always the first thing that is wrong.
std::string seeded(std::string_view bytes) {
  core::step::StepResult step;
  step.kernels.push_back({{}, std::string(bytes.substr(0, bytes.size() / 2)), 1, 2});
  step.by_kind.resize(bytes.size() % 3);
  std::string encoded = core::step::encode(step);
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
    encoded[static_cast<unsigned char>(bytes[i]) * encoded.size() / 256] = bytes[i + 1];
  return encoded;
}

/// The bytes behind the checksum that makes them readable.
std::string checked(std::string_view bytes) {
  return core::sharing::ByteWriter().put(std::uint64_t{XXH3_64bits(bytes.data(), bytes.size())}).take() +
         std::string(bytes);
}

/// A question begins with a transport, so that the rest is reached.
std::string seeded_question(std::string_view bytes) {
  std::string encoded = encode(core::network::ComponentQuestion{{}, true, {bytes.begin(), bytes.end()}}).substr(8);
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
    encoded[static_cast<unsigned char>(bytes[i]) * encoded.size() / 256] = bytes[i + 1];
  return checked(encoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& each : {bytes, seeded(bytes)}) {
    read_or_refuse(each, core::step::decode_step);
    read_or_refuse(each, core::step::decode_isolated);
    read_or_refuse(each, farm::decode_collective);
  }
  read_or_refuse(bytes, farm::decode_message);
  for (const std::string& each : {bytes, checked(bytes), seeded_question(bytes)}) {
    read_or_refuse(each, core::network::decode_question);
    read_or_refuse(each, core::network::decode_answer);
  }
  if (const auto failure = farm::parse_failure(bytes)) fuzz::require(!failure->ok() && failure->bytes.size() < size);
  return 0;
}
