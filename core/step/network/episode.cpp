#include "core/step/network/episode.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/step/layout/rank_layout.hpp"

namespace manyworlds::core::step {
namespace {

/// Returns the key of a log without entries.
sharing::Key key_of(const network::Transport& transport) {
  sharing::KeyWriter writer("empty episode");
  write_transport(writer, transport);
  return writer.finish();
}

sharing::Key key_of(const sharing::Key& before, const LogEntry& entry) {
  sharing::KeyWriter writer("episode");
  writer.key(before).integer(entry.at);
  writer.integer(static_cast<std::int64_t>(entry.joining.size()));
  for (const LogEntry::JoiningCollective& joining : entry.joining) {
    write_shape(writer, joining.shape);
    if (joining.dag->members != joining.shape.members) writer.text("members").integer(joining.dag->members);
    writer.integer(joining.group).integer(joining.place).integer(joining.connections);
    writer.integer(static_cast<std::int64_t>(joining.links.size()));
    for (const network::LinkSpec& link : joining.links) {
      writer.integer(link.bits_per_second).integer(link.latency_ps);
      writer.integer(link.leaves_gpu + 2 * link.enters_gpu + 4 * link.scale_up);
    }
    writer.integer(static_cast<std::int64_t>(joining.routes.size()));
    if (joining.order) writer.text("order").integer(*joining.order);
    for (const network::Route& route : joining.routes) {
      writer.integer(static_cast<std::int64_t>(route.size()));
      for (const std::uint32_t link : route) writer.integer(link);
    }
  }
  writer.integer(static_cast<std::int64_t>(entry.entries.size()));
  for (const auto& [collective, member] : entry.entries) writer.integer(collective).integer(member);
  return writer.finish();
}

}  // namespace

Episode::Episode(network::ComponentCache& cache) : traffic_(network::make_flows(cache)) {}

std::string Episode::text() const {
  return fmt::format("{} collectives entered {} times at {} instants", tie_order_.all().size(), entered_, instants_);
}

const network::Exit* Episode::exit(std::size_t index, Time limit) {
  MANYWORLDS_CHECK(index >= past_exits_, "exit {} of an episode that forgot {}", index, past_exits_);
  index -= past_exits_;
  while (exits_.size() <= index && traffic_.now() < limit) {
    traffic_.advance(limit, exits_);
    if (limit == kNever) break;  // simulated as far as possible without further entries
  }
  return exits_.size() > index && exits_[index].at <= limit ? &exits_[index] : nullptr;
}

void Episode::join(const LogEntry::JoiningCollective& joining) {
  for (const network::LinkSpec& link : joining.links) traffic_.add_link(link);
  if (joining.connections == connections_) connections_ = traffic_.add_routes(joining.routes) + 1;
  traffic_.add(joining.dag, joining.connections);
  const bool others_change = tie_order_.add(joining.group, joining.place);
  if (joining.order)
    traffic_.add_tie_order(*joining.order);
  else if (others_change)
    traffic_.set_tie_order(tie_order_.all());
  else
    traffic_.add_tie_order(tie_order_.all().back());
  open_members_ += joining.dag->members;
}

void Episode::append(const LogEntry& entry, const sharing::Key& key) {
  while (traffic_.now() < entry.at) traffic_.advance(entry.at, exits_);
  MANYWORLDS_CHECK(now() == entry.at, "an entry at {} joins an episode that has reached {}", entry.at, now());
  const auto first = std::find_if(exits_.begin(), exits_.end(), [&](const auto& exit) { return exit.at >= entry.at; });
  if (first != exits_.begin()) last_exit_ = std::prev(first)->at;
  past_exits_ += static_cast<std::size_t>(first - exits_.begin());
  exits_.erase(exits_.begin(), first);
  for (const LogEntry::JoiningCollective& joining : entry.joining) join(joining);
  for (const auto& [collective, member] : entry.entries) traffic_.enter(collective, member);
  entered_ += entry.entries.size();
  ++instants_;
  is_begun_ = false;
  key_ = key;
}

EpisodeCache::EpisodeCache(network::ComponentCache& cache, bool share)
    : cache_(cache), share_(share), empty_log_key_(key_of(cache.transport())) {}

std::shared_ptr<Episode> EpisodeCache::extend(std::shared_ptr<Episode> before, const Log& log) {
  const LogEntry& entry = *log.back();
  const sharing::Key key = key_of(before ? before->key() : empty_log_key_, entry);
  if (share_) {
    if (episodes_.size() > prune_at_) {
      std::erase_if(episodes_, [](const auto& item) { return item.second.expired(); });
      prune_at_ = 2 * episodes_.size() + 1'024;
    }
    if (auto found = episodes_[key].lock()) return found;
  }
  std::shared_ptr<Episode> episode;
  if (!before) {
    episode = std::make_shared<Episode>(cache_);
  } else if (before->now() <= entry.at) {
    if (before.use_count() == 1) {
      episodes_.erase(before->key());  // no other component holds it, so it is continued under its new key
      episode = std::move(before);
    } else {
      episode = std::make_shared<Episode>(*before);
    }
  } else {
    // A component with the same log has been simulated further already, so the log is replayed, mostly from the cache.
    episode = std::make_shared<Episode>(cache_);
    sharing::Key replayed = empty_log_key_;
    for (std::size_t i = 0; i + 1 < log.size(); ++i) episode->append(*log[i], replayed = key_of(replayed, *log[i]));
  }
  episode->append(entry, key);
  if (share_) episodes_[key] = episode;
  return episode;
}

}  // namespace manyworlds::core::step
