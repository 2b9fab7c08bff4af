#include "farm/cli/options/run_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"
#include "io/pictures/schedule_picture.hpp"
#include "io/pictures/trace.hpp"
#include "io/results/number_format.hpp"

namespace manyworlds::farm::commands {

void add_recording_options(cxxopts::Options& options) {
  options.add_options()("timeline", "what the ranks do, as a trace that ui.perfetto.dev opens; .json.gz is compressed",
                        cxxopts::value<std::string>(), "FILE.json[.gz]")(
      "timeline-ranks", "whose: `stages` (the first rank of each pipeline stage), `all`, or numbers: 0,8,16",
      cxxopts::value<std::string>()->default_value("stages"),
      "RANKS")("timeline-links", "network links with a counter, the busiest ones",
               cxxopts::value<std::int64_t>()->default_value("8"), "N")(
      "schedule", "the pipeline's schedule as a picture: a row for each stage, and what its passes are made of",
      cxxopts::value<std::string>(), "FILE.svg")(
      "critical-path", "what the chain of operations is made of, over all ranks, that makes the step as long as it is");
}

RankNumbers rank_numbers(const core::step::Configuration& configuration) {
  RankNumbers numbers;
  if (configuration.programs) {
    const std::vector<std::uint32_t>& program_of_rank = configuration.programs->ranks->program_of_rank;
    numbers.ranks = static_cast<std::uint32_t>(program_of_rank.size());
    std::set<std::uint32_t> known;
    for (std::uint32_t rank = 0; rank < numbers.ranks; ++rank)
      if (known.insert(program_of_rank[rank]).second) numbers.firsts.push_back(rank);
    return numbers;
  }
  const core::workload::Strategy& strategy = configuration.strategy;
  const auto stages = static_cast<std::uint32_t>(strategy.pp);
  const auto per_stage = static_cast<std::uint32_t>(strategy.tp * strategy.cp * strategy.dp);
  numbers.ranks = stages * per_stage;
  for (std::uint32_t stage = 0; stage < stages; ++stage) numbers.firsts.push_back(stage * per_stage);
  return numbers;
}

std::vector<std::uint32_t> parse_ranks(const std::string& text, const RankNumbers& numbers, const std::string& option) {
  if (text == "stages") return numbers.firsts;
  std::vector<std::uint32_t> ranks;
  if (text == "all") {
    for (std::uint32_t rank = 0; rank < numbers.ranks; ++rank) ranks.push_back(rank);
    return ranks;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::uint32_t rank = 0;
    const auto read = std::from_chars(text.data() + begin, text.data() + end, rank);
    if (read.ec != std::errc() || read.ptr != text.data() + end || rank >= numbers.ranks)
      throw core::InputError(fmt::format("must be stages, all, or ranks from 0 to {} with commas between, not '{}'",
                                         numbers.ranks - 1, text),
                             option);
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end())
      throw core::InputError(fmt::format("names rank {} twice", rank), option);
    ranks.push_back(rank);
    begin = end + 1;
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

RecordingOptions::RecordingOptions(const cxxopts::ParseResult& parsed, const experiments::Sweep& sweep)
    : name_(sweep.name) {
  for (const std::string option : {"timeline-ranks", "timeline-links"})
    if (parsed.count(option) > 0 && parsed.count("timeline") == 0)
      throw core::InputError("belongs to --timeline FILE.json", "--" + option);
  for (const std::string file : {"timeline", "schedule", "critical-path"})
    for (const std::string option : {"memory", "kernels"})
      if (parsed.count(file) > 0 && parsed.count(option) > 0)
        throw core::InputError(fmt::format("nothing is simulated under --{}: leave one of them out", option),
                               "--" + file);
  const auto& settings = sweep.experiments.front().settings;
  const core::step::Configuration configuration = experiments::config_of(settings, sweep.inputs).configuration;
  const RankNumbers numbers = rank_numbers(configuration);
  if (parsed.count("timeline") > 0) {
    const auto links = parsed["timeline-links"].as<std::int64_t>();
    if (links < 0) throw core::InputError(fmt::format("must be at least 0, not {}", links), "--timeline-links");
    links_ = static_cast<std::size_t>(links);
    timeline_ranks_ = parse_ranks(parsed["timeline-ranks"].as<std::string>(), numbers, "--timeline-ranks");
    timeline_path_ = required(parsed, "timeline");
    timeline_.emplace(timeline_path_);
  }
  if (parsed.count("schedule") > 0) {
    schedule_ranks_ = parse_ranks("stages", numbers, "--schedule");
    schedule_path_ = required(parsed, "schedule");
    schedule_.emplace(schedule_path_);
  }
  wants_critical_path_ = parsed.count("critical-path") > 0;
  if (wants_critical_path_ && !core::step::are_synchronised(configuration))
    throw core::InputError(
        "is of steps that end for all ranks together; here ranks do not wait for each other between steps",
        "--critical-path");
  if (wants_critical_path_) path_ranks_ = parse_ranks("all", numbers, "--critical-path");
}

std::vector<std::uint32_t> RecordingOptions::ranks() const {
  std::vector<std::uint32_t> ranks_to_record;
  std::set_union(timeline_ranks_.begin(), timeline_ranks_.end(), schedule_ranks_.begin(), schedule_ranks_.end(),
                 std::back_inserter(ranks_to_record));
  return wants_critical_path_ ? path_ranks_ : ranks_to_record;
}

std::string RecordingOptions::write(const SingleRun& run) {
  std::string written;
  if (timeline_) {
    io::write_trace(run.compiled(), run.recording(), {name_, timeline_ranks_, links_},
                    [&](std::string_view piece) { timeline_->append(piece); });
    const std::uint64_t bytes = timeline_->commit();
    written += fmt::format("timeline: {}, {}; ui.perfetto.dev opens it\n", core::line_text(timeline_path_),
                           io::with_si_prefix(static_cast<double>(bytes), "B"));
  }
  if (schedule_) {
    const std::string picture = io::schedule_picture(run.compiled(), run.recording(), name_);
    schedule_->append(picture);
    schedule_->commit();
    written += fmt::format("schedule: {}, {}; a browser shows it\n", core::line_text(schedule_path_),
                           io::with_si_prefix(static_cast<double>(picture.size()), "B"));
  }
  return written;
}

}  // namespace manyworlds::farm::commands
