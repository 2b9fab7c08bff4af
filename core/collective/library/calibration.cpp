#include "core/collective/library/calibration.hpp"

namespace manyworlds::core::collective {

double Calibration::link_share_in(LibraryVersion version) const {
  return version < LibraryVersion::v2_29 && older_rate_share > 0 ? link_share * older_rate_share : link_share;
}

double Calibration::older_launch_us_in(LibraryVersion version) const {
  if (version <= LibraryVersion::v2_23) return older_launch_us_2_23;
  return version == LibraryVersion::v2_26 ? older_launch_us_2_26 : 0;
}

const std::vector<std::string>& version_names() {
  static const std::vector<std::string> names{"2.10", "2.23", "2.26", "2.29"};
  return names;
}

namespace {

/// A row for a member of the calibration's figures of kernels that exchange tokens.
template <class Value, class Member>
OptionTable<Calibration>::Row token_option(OptionInfo info, Member member) {
  return {std::move(info),
          [member](Calibration& to, const OptionValue& value) { member(to.tokens) = std::get<Value>(value); },
          [member](const Calibration& from) {
            TokenCalibration tokens = from.tokens;
            return OptionValue(member(tokens));
          }};
}

OptionInfo token_info(std::string name, std::string help, OptionInfo::Kind kind) {
  OptionInfo info;
  info.name = std::move(name);
  info.help = std::move(help);
  info.kind = kind;
  return info;
}

OptionTable<Calibration> with_token_options(OptionTable<Calibration> table) {
  for (std::size_t i = 0; i < kTokenSets; ++i) {
    const TokenSetInfo& set = token_sets().at(i);
    for (const bool combine : {false, true})
      for (const TokenFigureInfo& figure : set.figures) {
        OptionInfo info = token_info(
            figure_name(set, combine, figure),
            fmt::format("exchange of tokens by {}, {}: {}", set.help, combine ? "combine" : "dispatch", figure.help),
            OptionInfo::Kind::real);
        info.unit = figure.unit;
        info.minimum = 0;
        info.maximum = figure.maximum;
        const auto direction = combine ? &TokenKernelFigures::combine : &TokenKernelFigures::dispatch;
        const auto member = figure.member;
        table.add(token_option<double>(std::move(info),
                                       [=](TokenCalibration& one) -> double& { return one.at(i).*direction.*member; }));
      }
    table.add(token_option<std::string>(
        token_info(from_name(set),
                   fmt::format("the GPU whose figures of {} these are, where none were measured on this one", set.help),
                   OptionInfo::Kind::text),
        [=](TokenCalibration& one) -> std::string& { return one.at(i).from; }));
  }
  return table;
}

}  // namespace

const OptionTable<Calibration>& calibration_options() {
  static constexpr Range kUs{0, 4'000}, kRate{0, 1e6}, kShare{0, 1};
  static const OptionTable<Calibration> table = with_token_options(OptionTable<Calibration>{
      choice("library_architecture", &Calibration::architecture, {"unknown", "ampere", "hopper", "blackwell", "cdna"},
             "architecture by whose tables the library chooses algorithms and protocols"),
      option("library_link_share", &Calibration::link_share, "share of the scale-up rate that collectives reach",
             kShare, "share"),
      option("library_launch_us", &Calibration::launch_us, "collectives, Simple: from the entry to the first transfer",
             kUs, "us"),
      option("library_hop_us", &Calibration::hop_us,
             "collectives, Simple: before each transfer inside a node, the wire included; two slices of a block "
             "overlap in it",
             kUs, "us"),
      option("library_copy_gb_per_s", &Calibration::copy_gb_per_s,
             "collectives, Simple and LL128: rate at which a member copies its own block", kRate, "GB/s"),
      option("library_fill_us", &Calibration::fill_us,
             "collectives, Simple: filling the pipelines of all channels, half of it at 24 MiB", kUs, "us"),
      option("library_fill_reduce_scatter_share", &Calibration::fill_reduce_scatter_share,
             "share of library_fill_us in a reduce-scatter", kShare, "share"),
      option("library_ll_launch_us", &Calibration::ll_launch_us,
             "collectives, LL: from the entry to the first transfer", kUs, "us"),
      option("library_ll_hop_us", &Calibration::ll_hop_us,
             "collectives, LL: before each transfer inside a node, the wire included", kUs, "us"),
      option("library_ll_store_launch_us", &Calibration::ll_store_launch_us,
             "collectives, LL: the first stores of a block of 4 KiB or more, and of a smaller one in proportion", kUs,
             "us"),
      option("library_ll_store_us", &Calibration::ll_store_us,
             "collectives, LL: the stores of each step, likewise, as far as the wire is not slower", kUs, "us"),
      option("library_ll_copy_gb_per_s", &Calibration::ll_copy_gb_per_s,
             "collectives, LL: rate at which a member copies its own block", kRate, "GB/s"),
      option("library_ll128_launch_us", &Calibration::ll128_launch_us,
             "collectives, LL128: from the entry to the first transfer", kUs, "us"),
      option("library_ll128_hop_us", &Calibration::ll128_hop_us,
             "collectives, LL128: before each transfer inside a node, the wire included", kUs, "us"),
      option("library_ll128_share", &Calibration::ll128_share, "share of the rate of Simple that LL128 reaches", kShare,
             "share"),
      option("library_in_switch_launch_us", &Calibration::in_switch_launch_us,
             "collectives reduced in switches: from the entry to the first transfer; none: switches do not reduce", kUs,
             "us"),
      option("library_in_switch_round_us", &Calibration::in_switch_round_us,
             "collectives reduced in switches: for each round of chunks over all channels", kUs, "us"),
      option("library_in_switch_copy_gb_per_s", &Calibration::in_switch_copy_gb_per_s,
             "collectives reduced in switches: rate at which the vector passes their ends", kRate, "GB/s"),
      option("library_in_switch_fill_us", &Calibration::in_switch_fill_us,
             "collectives reduced in switches: filling the pipelines of all channels, half of it at 24 MiB", kUs, "us"),
      option("library_exchange_launch_us", &Calibration::exchange_launch_us,
             "all-to-all and sends: from the entry to the first transfer", kUs, "us"),
      option("library_exchange_launch_per_log2_us", &Calibration::exchange_launch_per_log2_us,
             "all-to-all: added to the launch for each doubling of the members", kUs, "us"),
      option("library_exchange_simple_us", &Calibration::exchange_simple_us,
             "all-to-all and sends: added where messages are long enough for Simple", kUs, "us"),
      option("library_exchange_simple_kib", &Calibration::exchange_simple_kib,
             "all-to-all and sends: message from which all of library_exchange_simple_us is added", {0, 1e6}, "KiB"),
      option("library_exchange_link_share", &Calibration::exchange_link_share,
             "all-to-all and sends: share of the scale-up rate", kShare, "share"),
      option("library_exchange_copy_gb_per_s", &Calibration::exchange_copy_gb_per_s,
             "all-to-all and sends: rate at which a member copies its own message", kRate, "GB/s"),
      option("library_exchange_fill_us", &Calibration::exchange_fill_us,
             "all-to-all and sends: filling the pipelines of all channels, half of it at 24 MiB", kUs, "us"),
      option("library_hop_between_us", &Calibration::hop_between_us,
             "rings, Simple: before each transfer between nodes, the wire included", kUs, "us"),
      option("library_ll_hop_between_us", &Calibration::ll_hop_between_us,
             "rings, LL: before each transfer between nodes, the wire included", kUs, "us"),
      option("library_ll128_hop_between_us", &Calibration::ll128_hop_between_us,
             "rings, LL128: before each transfer between nodes, the wire included", kUs, "us"),
      option(
          "library_tree_hop_between_us", &Calibration::tree_hop_between_us,
          "trees, Simple: before each chunk between nodes, the wire included, and the chunk itself unless it is longer",
          kUs, "us"),
      option("library_ll_tree_hop_between_us", &Calibration::ll_tree_hop_between_us,
             "trees, LL: before each chunk between nodes, the wire included", kUs, "us"),
      option("library_ll128_tree_hop_between_us", &Calibration::ll128_tree_hop_between_us,
             "trees, LL128: before each chunk between nodes, the wire included", kUs, "us"),
      option("library_nic_share", &Calibration::nic_share, "share of a NIC's line rate that the library reaches",
             kShare, "share"),
      option("library_tree_nic_share", &Calibration::tree_nic_share, "share of library_nic_share that trees reach",
             kShare, "share"),
      option("library_dispatch_launch_us", &Calibration::dispatch_launch_us,
             "exchange of tokens (hybrid_ep): from the entry to the first transfer", kUs, "us"),
      option("library_dispatch_copy_gb_per_s", &Calibration::dispatch_copy_gb_per_s,
             "exchange of tokens (hybrid_ep) in a node: rate at which what a GPU sends passes the ends; 0: at no cost",
             kRate, "GB/s"),
      option("library_older_launch_us_2_23", &Calibration::older_launch_us_2_23,
             "what versions before 2.26 add to every launch", kUs, "us"),
      option("library_older_launch_us_2_26", &Calibration::older_launch_us_2_26,
             "what versions 2.26 to 2.28 add to every launch", kUs, "us"),
      option("library_older_rate_share", &Calibration::older_rate_share,
             "share of the links' rates that versions before 2.29 reach", kShare, "share"),
      option("library_from", &Calibration::from,
             "the GPU whose library_ figures these are, where none were measured on this one"),
  });
  return table;
}

}  // namespace manyworlds::core::collective
