#include "io/results/schedule_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "io/results/svg.hpp"

namespace manyworlds::io {
namespace {

using core::Time;
using core::step::Recording;
using core::step::World;
using core::workload::Slot;

constexpr double kLeft = 92, kTop = 62, kWidth = 1'400, kRow = 26, kGap = 6, kRight = 24, kAxis = 40;
constexpr double kThinnest = 1;  // pixels
constexpr double kLegendBase = 44;
constexpr double kSeparate = 8;  // width from which a pass has a line behind it

struct Colour {
  const char *name, *paint;
};
// Those of Okabe and Ito that can be told apart beside each other, on light and on dark ground; a bubble is the ground
// of its row.
constexpr std::array kColours{Colour{"forward", "#0072b2"},   Colour{"backward", "#009e73"},
                              Colour{"recompute", "#56b4e9"}, Colour{"optimizer", "#cc79a7"},
                              Colour{"host", "#8a8a8a"},      Colour{"communication", "#d55e00"},
                              Colour{"stall", "#e69f00"},     Colour{"bubble", "grid"}};
constexpr std::size_t kCommunication = 5, kStall = 6, kBubble = 7;
using Shares = std::array<Time, kColours.size()>;

std::size_t colour_of(core::stream::Wait why) {
  using core::stream::Wait;
  return why == Wait::bubble ? kBubble : why == Wait::stall ? kStall : kCommunication;
}

/// A part of a row.
struct Segment {
  Time begin = 0, end = 0;
  Shares shares{};
  std::optional<Slot> pass;  // if it is one, whole
  void add(const Segment& other) {
    end = other.end;
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += other.shares[i];
  }
};

/// Kernels and waits of the compute stream, in order of time; kernels have their pass, waits have none.
std::vector<Segment> pieces_of(const core::workload::Program& program, const core::stream::Record& record) {
  std::vector<Segment> pieces;
  for (const core::stream::Span& span : record.spans) {
    const core::workload::Op& op = program.ops[span.op];
    if (op.stream != core::workload::Stream::compute || span.begin == span.end) continue;
    Segment& made = pieces.emplace_back(Segment{span.begin, span.end, {}, {}});
    made.shares[static_cast<std::size_t>(op.booking)] = span.end - span.begin;
    if (const Slot* pass = program.pass_of(op)) made.pass = *pass;
  }
  for (const core::stream::Idle& idle : record.idle) {
    Segment& made = pieces.emplace_back(Segment{idle.begin, idle.end, {}, {}});
    made.shares[colour_of(idle.why)] = idle.end - idle.begin;
  }
  std::sort(pieces.begin(), pieces.end(), [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
  return pieces;
}

/// Whether they are one part of a row: waits for the same reason, or kernels of no pass.
bool alike(const Segment& a, const Segment& b) {
  for (std::size_t i = 0; i < a.shares.size(); ++i)
    if ((a.shares[i] > 0) != (b.shares[i] > 0)) return false;
  return !a.pass && !b.pass;
}

/// Passes with the waits inside them, and what lies between.
std::vector<Segment> segments_of(const std::vector<Segment>& pieces) {
  std::vector<Segment> segments;
  std::size_t pass = SIZE_MAX;  // the last one's place in `segments`
  for (const Segment& piece : pieces) {
    if (!piece.pass) {
      !segments.empty() && alike(segments.back(), piece) ? segments.back().add(piece) : segments.push_back(piece);
    } else if (pass != SIZE_MAX && segments[pass].pass == piece.pass) {
      for (std::size_t inside = pass + 1; inside < segments.size(); ++inside) segments[pass].add(segments[inside]);
      segments.resize(pass + 1);
      segments[pass].add(piece);
    } else {
      pass = segments.size();
      segments.push_back(piece);
    }
  }
  return segments;
}

/// None narrower than `thinnest`, unless there is only one. What is too thin goes to the segment before it; two that
/// are thin are no pass any more.
std::vector<Segment> widened(const std::vector<Segment>& segments, Time thinnest) {
  std::vector<Segment> made;
  const auto thin = [&](const Segment& segment) { return segment.end - segment.begin < thinnest; };
  for (const Segment& segment : segments) {
    const bool apart = made.empty() || (!thin(made.back()) && (!thin(segment) || segment.pass));
    if (apart) {
      made.push_back(segment);
      continue;
    }
    if (thin(made.back())) made.back().pass = thin(segment) ? std::nullopt : segment.pass;
    made.back().add(segment);
  }
  if (made.size() > 1 && thin(made.back())) {
    const Segment last = made.back();
    made.pop_back();
    made.back().add(last);
  }
  return made;
}

/// Pixels in hundredths, without zeros at the end.
std::string px(double value) {
  const auto hundredths = static_cast<std::int64_t>(std::llround(value * 100));
  std::string text = fmt::format("{}.{:02}", hundredths / 100, hundredths % 100);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Ticks that are 1, 2 or 5 times a power of ten apart, at most ten of them.
Time tick_of(Time end) {
  for (Time scale = 1;; scale *= 10)
    for (const Time each : {1, 2, 5})
      if (end / (each * scale) <= 10) return each * scale;
}

class Picture {
 public:
  Picture(const World& world, const Recording& recording) : world_(world), recording_(recording) {
    for (const Recording::Rank& rank : recording.ranks)
      if (world.layout().stage_of(rank.rank) == ranks_.size()) ranks_.push_back(&rank);
    const std::uint32_t stages = world.layout().ranks() / world.layout().ranks_of_stage();
    MANYWORLDS_CHECK(ranks_.size() == stages, "{} stages of {} are recorded", ranks_.size(), stages);
  }

  std::string draw(const std::string& title) {
    Svg svg(kLeft + kWidth + kRight, top_of(ranks_.size()) + kAxis);
    svg.text(kLeft, 20, fmt::format("{}: {:.6f} s; areas are times", title, core::seconds(recording_.end)));
    draw_axis(svg);
    std::vector<Number> numbers;
    for (std::size_t row = 0; row < ranks_.size(); ++row) draw_row(svg, row, numbers);
    for (std::size_t i = 0; i < kBubble; ++i)
      if (!paths_[i].empty()) svg.path(paths_[i], kColours[i].paint);
    for (const Number& number : numbers) {
      svg.line(number.right, number.top, number.right, number.top + kRow, "ground");
      const std::string text = std::to_string(number.micro_batch);
      if (number.right - number.left >= 8 * static_cast<double>(text.size()) + 2)
        svg.text((number.left + number.right) / 2, number.top + kRow / 2 + 4, text, Svg::Anchor::middle, "#ffffff");
    }
    draw_legend(svg);
    return svg.finish();
  }

 private:
  /// A pass that is wide enough to be told from the next.
  struct Number {
    double left, right, top;
    std::int32_t micro_batch;
  };

  double x(Time at) const { return kLeft + kWidth * static_cast<double>(at) / static_cast<double>(recording_.end); }
  static double top_of(std::size_t row) { return kTop + (kRow + kGap) * static_cast<double>(row); }

  void draw_row(Svg& svg, std::size_t row, std::vector<Number>& numbers) {
    const Recording::Rank& rank = *ranks_[row];
    const std::uint32_t stage = world_.layout().stage_of(rank.rank);
    const double top = top_of(row);
    svg.text(kLeft - 8, top + kRow / 2 + 4, fmt::format("stage {}", stage), Svg::Anchor::end);
    svg.rectangle(kLeft, top, kWidth, kRow, kColours[kBubble].paint);
    const auto thinnest = static_cast<Time>(std::ceil(static_cast<double>(recording_.end) * kThinnest / kWidth));
    const auto pieces =
        pieces_of(world_.programs()[world_.layout().class_of(rank.rank)], recording_.records[rank.record]);
    for (const Segment& segment : widened(segments_of(pieces), thinnest)) {
      draw_segment(segment, top);
      const Number number{x(segment.begin), x(segment.end), top, segment.pass ? segment.pass->micro_batch : -1};
      if (segment.pass && number.right - number.left >= kSeparate) numbers.push_back(number);
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

  const World& world_;
  const Recording& recording_;
  std::vector<const Recording::Rank*> ranks_;  // by stage
  Shares times_{};
  std::array<std::string, kColours.size()> paths_;
};

}  // namespace

std::string schedule_picture(const World& world, const Recording& recording, const std::string& title) {
  MANYWORLDS_CHECK(recording.end > 0, "a picture of a step that did not run");
  return Picture(world, recording).draw(title);
}

}  // namespace manyworlds::io
