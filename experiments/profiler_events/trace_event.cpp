#include "experiments/profiler_events/trace_event.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace manyworlds::experiments::profiler {
namespace {

constexpr std::int64_t kMaxUs = 9'000'000'000'000'000;      // of the year 2255; larger numbers are nanoseconds
constexpr std::int64_t kMaxNs = 4'000'000'000'000'000'000;  // so that a time and a clock's base add up

struct NamedMember {
  std::string_view name;
  Member member;
};
constexpr std::array kEventMembers{NamedMember{"ph", Member::phase},     NamedMember{"cat", Member::category},
                                   NamedMember{"name", Member::name},    NamedMember{"pid", Member::process},
                                   NamedMember{"tid", Member::thread},   NamedMember{"ts", Member::start},
                                   NamedMember{"dur", Member::duration}, NamedMember{"args", Member::args}};
constexpr std::array kArgumentMembers{NamedMember{"correlation", Member::correlation},
                                      NamedMember{"External id", Member::external},
                                      NamedMember{"external id", Member::external},
                                      NamedMember{"stream", Member::stream},
                                      NamedMember{"device", Member::device},
                                      NamedMember{"bytes", Member::bytes},
                                      NamedMember{"size", Member::bytes},
                                      NamedMember{"wait_on_stream", Member::awaited_stream},
                                      NamedMember{"wait_on_cuda_event_record_corr_id", Member::awaited_record},
                                      NamedMember{"Collective name", Member::collective},
                                      NamedMember{"dtype", Member::dtype},
                                      NamedMember{"In msg nelems", Member::in_elements},
                                      NamedMember{"Out msg nelems", Member::out_elements},
                                      NamedMember{"In split size", Member::in_split},
                                      NamedMember{"Out split size", Member::out_split},
                                      NamedMember{"Group size", Member::group_size},
                                      NamedMember{"Process Group Name", Member::group},
                                      NamedMember{"Process Group Description", Member::description},
                                      NamedMember{"Process Group Ranks", Member::group_ranks},
                                      NamedMember{"Global rank start", Member::first_rank},
                                      NamedMember{"Global rank stride", Member::rank_stride},
                                      NamedMember{"Seq", Member::sequence},
                                      NamedMember{"seq", Member::sequence},
                                      NamedMember{"Src Rank", Member::source},
                                      NamedMember{"Dst Rank", Member::destination},
                                      NamedMember{"Rank", Member::root},
                                      NamedMember{"Root Rank", Member::root},
                                      NamedMember{"Record function id", Member::function},
                                      NamedMember{"Input Dims", Member::inputs},
                                      NamedMember{"Input type", Member::inputs},
                                      NamedMember{"Input Strides", Member::inputs},
                                      NamedMember{"Concrete Inputs", Member::inputs}};

template <std::size_t kSize>
Member member_of(const std::array<NamedMember, kSize>& all, std::string_view name) {
  for (const NamedMember& one : all)
    if (one.name == name) return one.member;
  return Member::unknown;
}

std::int64_t integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && at == text.data() + text.size() ? value : TraceEvent::kUnknown;
}

WrittenTime of_double(const std::string& text) {
  const double us = std::strtod(text.c_str(), nullptr);
  if (!(std::abs(us) < static_cast<double>(kMaxUs)))
    return {static_cast<std::int64_t>(std::abs(us) < static_cast<double>(kMaxNs) ? us : 0),
            std::abs(us) < static_cast<double>(kMaxNs), true};
  const double ns = us * 1000;
  if (!(std::abs(ns) < static_cast<double>(kMaxNs))) return {};
  return {std::llround(ns), true, false};
}

}  // namespace

WrittenTime written_time(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::int64_t whole = integer(text.substr(0, point));
  if (whole == TraceEvent::kUnknown || whole < 0) return of_double(std::string(text));
  if (whole > kMaxUs) return {whole, whole <= kMaxNs, true};
  if (whole > kMaxNs / 1000) return {};
  std::int64_t fraction = 0;
  if (point != std::string_view::npos) {
    const std::string_view digits = text.substr(point + 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      return of_double(std::string(text));
    for (std::size_t i = 0; i < 3; ++i) fraction = fraction * 10 + (i < digits.size() ? digits[i] - '0' : 0);
    if (digits.size() > 3 && digits[3] >= '5') ++fraction;
  }
  return {whole * 1000 + fraction, true, false};
}

Member event_member(std::string_view name) {
  return member_of(kEventMembers, name);
}

Member argument_member(std::string_view name) {
  return member_of(kArgumentMembers, name);
}

void TraceEvent::set(Member member, std::string_view text) {
  switch (member) {
    case Member::phase:
      phase.assign(text);
      break;
    case Member::category:
      category.assign(text);
      break;
    case Member::name:
      name.assign(text);
      break;
    case Member::process:
      process.assign(text);
      break;
    case Member::thread:
      thread.assign(text);
      break;
    case Member::start:
      start = written_time(text);
      break;
    case Member::duration:
      duration = written_time(text);
      break;
    case Member::correlation:
      correlation = integer(text);
      break;
    case Member::external:
      external = integer(text);
      break;
    case Member::stream:
      stream = integer(text);
      break;
    case Member::device:
      device = integer(text);
      break;
    case Member::bytes:
      bytes = integer(text);
      break;
    case Member::awaited_stream:
      awaited_stream = integer(text);
      break;
    case Member::awaited_record:
      awaited_record = integer(text);
      break;
    case Member::collective:
      collective.assign(text);
      break;
    case Member::dtype:
      dtype.assign(text);
      break;
    case Member::in_elements:
      in_elements = integer(text);
      break;
    case Member::out_elements:
      out_elements = integer(text);
      break;
    case Member::in_split:
      in_split.assign(text);
      break;
    case Member::out_split:
      out_split.assign(text);
      break;
    case Member::group_size:
      group_size = integer(text);
      break;
    case Member::group:
      group.assign(text);
      break;
    case Member::description:
      description.assign(text);
      break;
    case Member::group_ranks:
      group_ranks.assign(text);
      break;
    case Member::first_rank:
      first_rank = integer(text);
      break;
    case Member::rank_stride:
      rank_stride = integer(text);
      break;
    case Member::sequence:
      sequence = integer(text);
      break;
    case Member::source:
      source = integer(text);
      break;
    case Member::destination:
      destination = integer(text);
      break;
    case Member::root:
      root = integer(text);
      break;
    case Member::function:
      function = integer(text);
      break;
    case Member::unknown:
    case Member::args:
    case Member::inputs:
      break;
  }
}

void TraceEvent::add(Member member, std::string_view text) {
  std::string* list = member == Member::group_ranks ? &group_ranks
                      : member == Member::in_split  ? &in_split
                      : member == Member::out_split ? &out_split
                                                    : nullptr;
  if (list == nullptr) return;
  if (!list->empty()) list->append(", ");
  list->append(text);
}

void TraceEvent::clear() {
  for (std::string* text : {&phase, &category, &name, &process, &thread, &collective, &dtype, &group, &description,
                            &group_ranks, &in_split, &out_split, &inputs})
    text->clear();
  start = duration = {};
  for (std::int64_t* number :
       {&correlation, &external, &stream, &device, &bytes, &awaited_stream, &awaited_record, &in_elements,
        &out_elements, &group_size, &first_rank, &rank_stride, &sequence, &source, &destination, &root, &function})
    *number = kUnknown;
}

}  // namespace manyworlds::experiments::profiler
