// The points of a sweep that are too many to be listed: looked at one by one, or many at once, as those that differ in
// keys that a lower bound may leave open.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/catalog/cluster_files.hpp"
#include "experiments/sweep/experiment.hpp"
#include "experiments/sweep/sweep_reader.hpp"

namespace manyworlds::experiments {

class Space {
 public:
  /// Of each factor the index of its value, or kOpen for one that can_stay_open().
  using Point = std::vector<std::uint32_t>;
  static constexpr std::uint32_t kOpen = UINT32_MAX;

  /// Reads a sweep as parse_sweep() does, but lists no point. `catalog` must outlive the space.
  Space(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
        const Catalog& catalog, const ReadOptions& options = {});

  /// What the document says beside its points.
  const Sweep& sweep() const { return reader_.sweep(); }
  /// Asks for its best as `asked` does, whatever the document says.
  void ask_for_best(const Sweep& asked) { reader_.ask_for_best(asked); }
  bool has_sample() const { return reader_.has_sample(); }
  std::size_t factors() const { return sizes_.size(); }
  std::size_t size_of(std::size_t factor) const { return sizes_[factor]; }
  bool can_stay_open(std::size_t factor) const { return open_keys_[factor].has_value(); }
  /// Whether a factor has no values of its own: a search chooses them, and until it has, they are open.
  bool is_any(std::size_t factor) const { return reader_.factors()[factor].axes.front().any; }
  bool has_any() const;
  /// Gives such a factor of a point a value.
  void choose(Point& point, std::size_t factor, const std::string& value) {
    point[factor] = static_cast<std::uint32_t>(reader_.value_of_any(factor, value));
  }
  /// Returns what --set has to be given so that the document is such a point alone, of which nothing is open.
  std::vector<std::string> overrides_of(const Point& point) const {
    return reader_.overrides_of({point.begin(), point.end()});
  }
  /// Returns how many points there are, valid or not, as a double, since axes make any number; an axis that may be
  /// any counts once.
  double points() const;
  /// Returns how many points a point with open factors stands for, likewise.
  double points_of(const Point& point) const;
  /// Returns the families of keys of which a point leaves some open.
  OpenKeys open_keys_of(const Point& point) const;

  /// Prepares for views. Throws InputError for what the value of a single axis lacks, or for a file that it names.
  void prepare() { reader_.prepare(); }

  /// Looks at points of a prepared space, for one thread.
  class Viewer {
   public:
    explicit Viewer(const Space& space) : space_(space), constraints_(space.reader_.constraints()) {}

    /// Returns the experiment of a point, without id and axes; neutral where it is open. Returns nothing if a rule or a
    /// condition excludes it, or everything that it stands for.
    std::optional<Experiment> experiment_of(const Point& point);
    /// Returns the rule or the condition that excludes a point, for people; empty if none does.
    std::string why_excluded(const Point& point);
    core::step::Configuration configuration_of(const Experiment& experiment);

   private:
    Settings settings_of(const Point& point);
    std::string why_excluded(const Point& point, const Settings& settings);

    const Space& space_;
    std::vector<Constraint> constraints_;
    CalibrationBorrower borrower_;
    GraphCache graphs_;
    ConfigReader config_reader_;
  };

  /// Ends the space and returns the sweep of all points, or of the sample that is asked for, as parse_sweep() does.
  Sweep list() && { return reader_.list(); }
  /// Ends a prepared space and returns the sweep of these points, none of which is open.
  Sweep list(std::vector<Point> points) &&;

 private:
  std::unique_ptr<const ExtendedCatalog> catalog_;  // which the reader refers to
  ReadOptions options_;
  SweepReader reader_;
  std::vector<std::size_t> sizes_;
  std::vector<std::optional<OpenKeys>> open_keys_;
};

}  // namespace manyworlds::experiments
