#include "core/step/run/result.hpp"

#include "core/sharing/bytes.hpp"

namespace manyworlds::core::step {
namespace {

// The plain fields in order, listed once for encoding and decoding.
template <class Result, class Field>
void fields(Result& r, Field field) {
  field(r.step_ps), field(r.link_hops), field(r.ecn_marks), field(r.pauses), field(r.packets_lost);
  field(r.packets_sent_again), field(r.busiest_link_share);
  for (auto& seconds : r.breakdown) field(seconds);
  field(r.kernel_shares.measured), field(r.kernel_shares.interpolated);
  for (auto& share : r.kernel_shares.modelled) field(share);
  field(r.fluid.contended), field(r.fluid.sampled), field(r.fluid.mean), field(r.fluid.bias), field(r.fluid.max);
  field(r.fluid.step);
  field(r.computed.simulated), field(r.computed.periods), field(r.computed.rate), field(r.cpu_s);
}

void write(sharing::ByteWriter& out, const sharing::Key& key) {
  for (const std::uint64_t word : {key.digest[0], key.digest[1], key.check[0], key.check[1], key.length})
    out.integer(static_cast<std::int64_t>(word));
}

void read(sharing::ByteReader& in, sharing::Key& key) {
  for (std::uint64_t* word : {&key.digest[0], &key.digest[1], &key.check[0], &key.check[1], &key.length})
    *word = static_cast<std::uint64_t>(in.integer());
}

}  // namespace

std::string encode(const StepResult& result) {
  sharing::ByteWriter out;
  out.integer(result.too_large);
  fields(result, [&](const auto& value) {
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>)
      out.real(value);
    else
      out.integer(value);
  });
  for (const auto* list : {&result.kernels, &result.collectives, &result.episodes}) {
    out.integer(static_cast<std::int64_t>(list->size()));
    for (const SubsimulationUse& used : *list) {
      write(out, used.key);
      out.text(used.parameters).integer(used.result_ps).integer(used.times);
    }
  }
  out.integer(static_cast<std::int64_t>(result.by_kind.size()));
  for (const Breakdown& one : result.by_kind)
    for (const double seconds : one) out.real(seconds);
  return out.take();
}

StepResult decode_step(std::string_view bytes) {
  sharing::ByteReader in(bytes);
  StepResult result;
  result.too_large = in.integer() != 0;
  fields(result, [&](auto& value) {
    if constexpr (std::is_floating_point_v<std::decay_t<decltype(value)>>)
      value = in.real();
    else
      value = in.integer();
  });
  for (auto* list : {&result.kernels, &result.collectives, &result.episodes}) {
    list->resize(in.count(64));
    for (SubsimulationUse& used : *list) {
      read(in, used.key);
      used.parameters = in.text();
      used.result_ps = in.integer();
      used.times = in.integer();
    }
  }
  result.by_kind.resize(in.count(Breakdown::size() * sizeof(double)));
  for (Breakdown& one : result.by_kind)
    for (double& seconds : one) seconds = in.real();
  in.end();
  return result;
}

}  // namespace manyworlds::core::step
