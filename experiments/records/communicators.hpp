// The communicators of a job, joined from what each of its ranks recorded, and whether their members do the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/records/rank_record.hpp"

namespace manyworlds::experiments::captured {

/// A communicator's members, by their rank in it. Of a job whose records are not all there, some may be unknown.
struct JoinedCommunicator {
  std::string key;
  std::vector<std::int32_t> records;  // by rank in it: index of the record, or kNone
  std::vector<std::int32_t> numbers;  // by rank in it: the communicator's number in that record
};

/// Joins communicators by their keys, in the order in which the ranks open them: those that all ranks open first come
/// first. `records` are in ascending order of ranks. Throws InputError, with the line, for two ranks of one number in a
/// communicator and for sizes that differ; if the record of every rank is there, also for a number that no rank has.
std::vector<JoinedCommunicator> join_communicators(const std::vector<RankRecord>& records);

/// Throws InputError unless the n-th collective of a communicator is the same for all of its members whose records are
/// there (function, count, type, reduction, root), none of them has more than another, and what one sends to another
/// is what that receives of it, in order: with the file and line of the one, and those of the other in the message.
void check_calls(const std::vector<RankRecord>& records, const std::vector<JoinedCommunicator>& communicators,
                 const Words& words);

}  // namespace manyworlds::experiments::captured
