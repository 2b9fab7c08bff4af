// Which ranks of the job are in which communicator, also of ranks that were not recorded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/records/communicators.hpp"
#include "experiments/records/rank_record.hpp"

namespace manyworlds::experiments::captured {

/// Groups of ranks by the number of the communicator that they are, in the records of their ranks.
using GroupsOfCommunicators = std::map<std::size_t, std::vector<std::vector<std::uint32_t>>>;

/// Parses a file of groups, {"1": [[0,1],[2,3]]}, of `world` ranks; none if the text is empty. Throws InputError, with
/// the line, for what is no such file, and for a rank that stands twice for one communicator.
GroupsOfCommunicators parse_groups(std::string_view text, const std::string& name, std::uint32_t world);

/// The groups of a job, each with its ranks in the order of their numbers in it.
class RankGroups {
 public:
  /// `record_of_rank` has, by rank of the job, the index of the record that it is, or stands for it. `used` has, by
  /// record, the communicators that the step uses. `groups` is the text of a file that says, by number of a
  /// communicator in the records, the groups of ranks that it stands for; `name` is its name in messages. Throws
  /// InputError for a communicator of which some members are not known, and for a file that contradicts the records.
  RankGroups(const std::vector<RankRecord>& records, const std::vector<JoinedCommunicator>& joined,
             const std::vector<std::size_t>& record_of_rank, const std::vector<std::vector<bool>>& used,
             std::string_view groups, const std::string& name);

  const std::vector<std::vector<std::uint32_t>>& groups() const { return groups_; }
  /// The group in which a rank is, for a communicator of the record that it is or that stands for it.
  std::uint32_t group_of(std::uint32_t rank, std::size_t communicator) const {
    return group_of_.at({rank, static_cast<std::uint32_t>(communicator)});
  }
  /// The rank of the job that a call of that record names by its number in the communicator: for a rank that another
  /// stands for, as far from its own number as there.
  std::uint32_t peer_of(std::uint32_t rank, std::size_t communicator, std::int32_t in_rank, std::int32_t peer) const;

 private:
  std::uint32_t number_of(std::size_t communicator, const std::vector<std::uint32_t>& ranks);

  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::size_t, std::vector<std::uint32_t>>, std::uint32_t> numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> group_of_;  // by rank and communicator
};

}  // namespace manyworlds::experiments::captured
