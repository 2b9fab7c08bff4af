#include "io/pictures/schedule_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/workload/program/step_parts.hpp"
#include "io/pictures/svg.hpp"

namespace manyworlds::io {
namespace {

using core::Time;
using core::step::CompiledStep;
using core::step::Recording;
using core::workload::PipelinePass;

constexpr double kLeft = 92, kTop = 62, kWidth = 1'400, kRow = 26, kGap = 6, kRight = 24, kAxis = 40;
constexpr double kMinWidth = 1;  // pixels
constexpr double kLegendBase = 44;
constexpr double kMinSeparatedWidth = 8;  // minimum width in pixels of a pass with a separator line after it

struct Colour {
  const char *name, *paint;
};
// Colours from the palette of Okabe and Ito that are distinguishable side by side on a light and on a dark background;
// a bubble has the background colour of its row.
constexpr std::array kColours{Colour{"forward", "#0072b2"},   Colour{"backward", "#009e73"},
                              Colour{"recompute", "#56b4e9"}, Colour{"optimizer", "#cc79a7"},
                              Colour{"host", "#8a8a8a"},      Colour{"communication", "#d55e00"},
                              Colour{"stall", "#e69f00"},     Colour{"bubble", "grid"}};
constexpr std::size_t kCommunication = 5, kStall = 6, kBubble = 7;
using Shares = std::array<Time, kColours.size()>;

std::size_t colour_of(core::workload::StepPart why) {
  using core::workload::StepPart;
  return why == StepPart::bubble ? kBubble : why == StepPart::stall ? kStall : kCommunication;
}

/// A coloured section of a row.
struct Segment {
  Time begin = 0, end = 0;
  Shares shares{};
  std::optional<PipelinePass> pass;  // set for a whole pass
  void add(const Segment& other) {
    end = other.end;
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += other.shares[i];
  }
};

/// Returns the kernels and waits of the compute stream in order of time; kernels have their pass, waits have none.
std::vector<Segment> compute_intervals(const core::workload::Program& program, const core::stream::Record& record) {
  std::vector<Segment> intervals;
  for (const core::stream::Span& span : record.spans) {
    const core::workload::Op& op = program.ops[span.op];
    if (op.stream != core::workload::Stream::compute || span.begin == span.end) continue;
    Segment& result = intervals.emplace_back(Segment{span.begin, span.end, {}, {}});
    const core::workload::StepPart category = std::get<core::workload::KernelOp>(op.action).category;
    result.shares[static_cast<std::size_t>(category)] = span.end - span.begin;
    if (const PipelinePass* pass = program.pass_of(op)) result.pass = *pass;
  }
  for (const core::stream::Idle& idle : record.idle) {
    Segment& result = intervals.emplace_back(Segment{idle.begin, idle.end, {}, {}});
    result.shares[colour_of(idle.why)] = idle.end - idle.begin;
  }
  std::sort(intervals.begin(), intervals.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  return intervals;
}

/// Returns whether two adjacent sections can be joined: waits for the same reason, or kernels without a pass.
bool mergeable(const Segment& a, const Segment& b) {
  for (std::size_t i = 0; i < a.shares.size(); ++i)
    if ((a.shares[i] > 0) != (b.shares[i] > 0)) return false;
  return !a.pass && !b.pass;
}

/// Joins each pass with the waits inside it, and mergeable intervals between passes.
std::vector<Segment> segments_of(const std::vector<Segment>& intervals) {
  std::vector<Segment> segments;
  std::size_t pass = SIZE_MAX;  // index of the last pass in `segments`
  for (const Segment& interval : intervals) {
    if (!interval.pass) {
      !segments.empty() && mergeable(segments.back(), interval) ? segments.back().add(interval)
                                                                : segments.push_back(interval);
    } else if (pass != SIZE_MAX && segments[pass].pass == interval.pass) {
      for (std::size_t inside = pass + 1; inside < segments.size(); ++inside) segments[pass].add(segments[inside]);
      segments.resize(pass + 1);
      segments[pass].add(interval);
    } else {
      pass = segments.size();
      segments.push_back(interval);
    }
  }
  return segments;
}

/// Joins segments until none is narrower than `min_duration`, unless only one is left. A thin segment is added to the
/// one before it; two joined thin segments are no longer a pass.
std::vector<Segment> merge_thin_segments(const std::vector<Segment>& segments, Time min_duration) {
  std::vector<Segment> result;
  const auto thin = [&](const Segment& segment) { return segment.end - segment.begin < min_duration; };
  for (const Segment& segment : segments) {
    const bool separate = result.empty() || (!thin(result.back()) && (!thin(segment) || segment.pass));
    if (separate) {
      result.push_back(segment);
      continue;
    }
    if (thin(result.back())) result.back().pass = thin(segment) ? std::nullopt : segment.pass;
    result.back().add(segment);
  }
  if (result.size() > 1 && thin(result.back())) {
    const Segment last = result.back();
    result.pop_back();
    result.back().add(last);
  }
  return result;
}

/// Returns pixels in hundredths, without trailing zeros.
std::string px(double value) {
  const auto hundredths = static_cast<std::int64_t>(std::llround(value * 100));
  std::string text = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Returns the distance between ticks: 1, 2 or 5 times a power of ten, for at most ten ticks.
Time tick_of(Time end) {
  for (Time scale = 1;; scale *= 10)
    for (const Time each : {1, 2, 5})
      if (end / (each * scale) <= 10) return each * scale;
}

class Picture {
 public:
  Picture(const CompiledStep& compiled, const Recording& recording) : compiled_(compiled), recording_(recording) {
    for (const Recording::Rank& rank : recording.ranks)
      if (compiled.layout().stage_of(rank.rank) == ranks_.size()) ranks_.push_back(&rank);
    const std::uint32_t stages = compiled.layout().ranks() / compiled.layout().ranks_per_stage();
    MANYWORLDS_CHECK(ranks_.size() == stages, "{} stages of {} are recorded", ranks_.size(), stages);
  }

  std::string draw(const std::string& title) {
    Svg svg(kLeft + kWidth + kRight, top_of(ranks_.size()) + kAxis);
    svg.text(kLeft, 20, fmt::format("{}: {:.6f} s; areas are times", title, core::seconds(recording_.end)));
    draw_axis(svg);
    std::vector<PassLabel> labels;
    for (std::size_t row = 0; row < ranks_.size(); ++row) draw_row(svg, row, labels);
    for (std::size_t i = 0; i < kBubble; ++i)
      if (!paths_[i].empty()) svg.path(paths_[i], kColours[i].paint);
    for (const PassLabel& label : labels) {
      svg.line(label.right, label.top, label.right, label.top + kRow, "ground");
      const std::string text = std::to_string(label.micro_batch);
      if (label.right - label.left >= 8 * static_cast<double>(text.size()) + 2)
        svg.text((label.left + label.right) / 2, label.top + kRow / 2 + 4, text, Svg::Anchor::middle, "#ffffff");
    }
    draw_legend(svg);
    return svg.finish();
  }

 private:
  /// The micro-batch number of a pass that is wide enough to be separated from the next.
  struct PassLabel {
    double left, right, top;
    std::int32_t micro_batch;
  };

  double x(Time at) const { return kLeft + kWidth * static_cast<double>(at) / static_cast<double>(recording_.end); }
  static double top_of(std::size_t row) { return kTop + (kRow + kGap) * static_cast<double>(row); }

  void draw_row(Svg& svg, std::size_t row, std::vector<PassLabel>& labels) {
    const Recording::Rank& rank = *ranks_[row];
    const std::uint32_t stage = compiled_.layout().stage_of(rank.rank);
    const double top = top_of(row);
    svg.text(kLeft - 8, top + kRow / 2 + 4, fmt::format("stage {}", stage), Svg::Anchor::end);
    svg.rectangle(kLeft, top, kWidth, kRow, kColours[kBubble].paint);
    const auto min_duration = static_cast<Time>(std::ceil(static_cast<double>(recording_.end) * kMinWidth / kWidth));
    const auto intervals = compute_intervals(compiled_.programs()[compiled_.layout().class_of(rank.rank)],
                                             recording_.records[rank.record]);
    for (const Segment& segment : merge_thin_segments(segments_of(intervals), min_duration)) {
      draw_segment(segment, top);
      const PassLabel label{x(segment.begin), x(segment.end), top, segment.pass ? segment.pass->micro_batch : -1};
      if (segment.pass && label.right - label.left >= kMinSeparatedWidth) labels.push_back(label);
    }
  }

  void draw_segment(const Segment& segment, double top) {
    Time below = 0;
    const auto height = [&](Time share) {
      return kRow * static_cast<double>(share) / static_cast<double>(segment.end - segment.begin);
    };
    const std::string left = px(x(segment.begin)), right = px(x(segment.end));
    for (std::size_t i = 0; i < kColours.size(); ++i) {
      times_[i] += segment.shares[i];
      const std::string low = px(top + kRow - height(below)), high = px(top + kRow - height(below + segment.shares[i]));
      below += segment.shares[i];
      if (i != kBubble && low != high) paths_[i] += fmt::format("M{} {}H{}V{}H{}z", left, low, right, high, left);
    }
    MANYWORLDS_CHECK(below == segment.end - segment.begin, "colours fill {} of {} ps", below,
                     segment.end - segment.begin);
  }

  void draw_legend(Svg& svg) const {
    Time all = 0;
    for (const Time time : times_) all += time;
    double left = kLeft;
    for (std::size_t i = 0; i < kColours.size(); ++i) {
      if (times_[i] == 0) continue;
      const std::string text =
          fmt::format("{} {:.1f} %", kColours[i].name, 100 * static_cast<double>(times_[i]) / static_cast<double>(all));
      svg.rectangle(left, 34, 12, 12, kColours[i].paint);
      svg.text(left + 17, kLegendBase, text);
      left += 40 + 7 * static_cast<double>(text.size());
    }
  }

  void draw_axis(Svg& svg) const {
    const double bottom = top_of(ranks_.size());
    const Time tick = tick_of(recording_.end);
    const Time unit = recording_.end >= core::kSecond        ? core::kSecond
                      : recording_.end >= core::kMillisecond ? core::kMillisecond
                                                             : core::kMicrosecond;
    const char* name = unit == core::kSecond ? "s" : unit == core::kMillisecond ? "ms" : "us";
    for (Time at = 0; at <= recording_.end; at += tick) {
      svg.line(x(at), kTop - 4, x(at), bottom + 2, "grid");
      svg.text(x(at), bottom + 18, fmt::format("{:g} {}", static_cast<double>(at) / static_cast<double>(unit), name),
               Svg::Anchor::middle, "quiet");
    }
  }

  const CompiledStep& compiled_;
  const Recording& recording_;
  std::vector<const Recording::Rank*> ranks_;  // by stage
  Shares times_{};
  std::array<std::string, kColours.size()> paths_;
};

}  // namespace

std::string schedule_picture(const CompiledStep& compiled, const Recording& recording, const std::string& title) {
  MANYWORLDS_CHECK(recording.end > 0, "a picture of a step that did not run");
  return Picture(compiled, recording).draw(title);
}

}  // namespace manyworlds::io
