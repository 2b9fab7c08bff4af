// The results of a run: its tables in one HDF5 file, whose layout docs/formats.md specifies. HDF5 is not used in a
// thread-safe way: only one thread at a time may call these functions.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

inline constexpr std::int64_t kResultsFormatVersion = 2;

struct Attribute {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

struct Results {
  // The reproducible part: it depends on the sweep and the build only.
  std::string spec;                     // the sweep, verbatim
  std::vector<std::string> axis_names;  // the columns of `experiments` that are axes, in the order of the spec
  Table experiments;                    // one row per experiment, in the order of the spec
  Table excluded;
  Table kernels, collectives, episodes;  // the sub-simulations
  // How the results were computed.
  std::vector<Attribute> provenance;
};

/// Returns the reproducible tables with the names of their groups, in the order of the file.
std::array<std::pair<std::string, const Table*>, 5> result_tables(const Results& results);
std::array<std::pair<std::string, Table*>, 5> result_tables(Results& results);

/// A column of /experiments that every results file has. Any other may be missing, as in runs of other versions.
struct RequiredColumn {
  std::string_view name;
  ElementType type;
};
std::span<const RequiredColumn> required_columns();

/// The attribute of /provenance for objective_of().
inline constexpr const char* kObjective = "objective";

/// Ends the name of the column with the best that the objective can be: "tokens_per_s_per_gpu_bound".
inline constexpr std::string_view kBoundSuffix = "_bound";

/// Begins the line after the spec in Results::spec that lists the assumed defaults.
inline constexpr std::string_view kAssumedPrefix = "# assumed: ";
/// Returns the rest of that line; empty if nothing was assumed.
std::string assumed_defaults(const Results& results);
/// Returns a line for people about the assumptions, or "" if there are none.
std::string assumed_text(const std::string& assumed);

/// Returns the attribute `name` of /provenance as a number; 0 if there is none.
double provenance_number(const Results& results, const std::string& name);
/// Returns the column that the sweep asked for the best of, by which its results are ranked unless another is asked
/// for; tokens_per_s_per_gpu where they do not tell.
std::string objective_of(const Results& results);
/// Returns what the experiments would take one by one, and how many times as much CPU time as the sweep took that is;
/// empty if it is not known.
std::string one_by_one_text(const Results& results);

/// Writes the file atomically. Equal results give equal bytes (with the same zlib and HDF5). Throws IoError.
void write_results(const std::filesystem::path& path, const Results& results);

/// Throws IoError for a file that cannot be read, InputError for one that is truncated, damaged or not a results file.
/// HDF5 parses it in a sandboxed process: the seal has no secret, so anybody can seal a malformed file.
Results read_results(const std::filesystem::path& path);

/// Returns the version of the HDF5 library in use, "1.10.8".
std::string hdf5_version();

}  // namespace manyworlds::io
