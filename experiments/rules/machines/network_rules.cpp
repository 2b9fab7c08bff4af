#include "experiments/rules/machines/network_rules.hpp"

#include "core/base/error.hpp"
#include "core/network/fabric/router.hpp"
#include "core/network/flows/flows.hpp"
#include "core/network/transports/pfc_headroom.hpp"
#include "core/network/transports/registry.hpp"
#include "experiments/rules/rule_sources.hpp"

namespace manyworlds::experiments {
namespace {

/// The topology without faults must fit the cluster; then the faults must fit the topology.
Rule graph_rule(std::string name, std::string reason, std::string key, bool with_faults,
                std::vector<std::string> prerequisites) {
  return {std::move(name),
          std::move(reason),
          std::move(key),
          [with_faults](const ExperimentConfig& config, GraphCache& graphs) -> Violation {
            if (with_faults && config.faults.fabric_is_intact()) return std::nullopt;
            try {
              if (with_faults || config.faults.fabric_is_intact()) {
                graphs.get(config);
              } else {
                ExperimentConfig whole = config;
                whole.faults = {};
                graphs.get(whole);
              }
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          },
          false,
          kConstruction,
          std::move(prerequisites)};
}

Rule lossless_rule() {
  return {"lossless",
          "a buffer must hold what is on its way when a pause takes effect",
          "transport",
          [](const ExperimentConfig& config, GraphCache& graphs) -> Violation {
            try {
              core::network::check_pfc_headroom(*graphs.get(config), config.configuration.transport);
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          },
          false,
          kPfc,
          {"gpus_at_most", "node_in_scale_up_domain", "topology_fits", "faults_fit", "pause_thresholds"}};
}

/// A flowlet keeps its path for as long as it lasts, so that it is neither pinned nor spread.
Rule fluid_routing_rule() {
  Rule result = rule("fluid_routing", "transport",
                     "fidelity fluid takes paths that are pinned, or that are chosen for every packet; flowlets need "
                     "fidelity packet",
                     {kConstruction}, [](const ExperimentConfig& e) -> Violation {
                       const auto& t = e.configuration.transport;
                       if (t.fidelity != core::network::Fidelity::fluid ||
                           core::network::routing_of(t) != core::network::Routing::flowlet)
                         return std::nullopt;
                       return "routing is flowlet";
                     });
  result.steps_only = true;
  return result;
}

/// Where packets choose among paths, switches do not hash connections.
Rule hashed_paths_rule() {
  return rule("hashed_paths", "transport",
              "ecmp_hash_seeds other than per_hop and ecmp_weights other than equal need routing ecmp_hash",
              {"Xu et al. 2022 (seeds) and Zhou et al. 2014 (weights), as in docs/model/network.md"},
              [](const ExperimentConfig& e) -> Violation {
                const auto& t = e.configuration.transport;
                const core::OptionSet values = core::network::transport_options().read(t);
                if (core::network::routing_of(t) == core::network::Routing::ecmp_hash ||
                    core::network::path_choice_of(t).is_hashed_as_ever())
                  return std::nullopt;
                return fmt::format("routing {}, ecmp_hash_seeds {}, ecmp_weights {}",
                                   std::get<std::string>(values.at("routing")),
                                   std::get<std::string>(values.at("ecmp_hash_seeds")),
                                   std::get<std::string>(values.at("ecmp_weights")));
              });
}

/// What is under way when a cable fails is known to packets and fluids, of fluids on pinned paths alone. A lossy fabric
/// has senders with timeouts of their own.
Rule failing_cables_rule() {
  return rule(
      "failing_cables", "faults.fails",
      "cables that fail on the way need fidelity packet, or fluid on pinned paths (routing destination_mod_k or "
      "ecmp_hash); faults.reconverge_us, the time until routes avoid them; and no faults.retransmit_us where the "
      "transport has timeouts of its own (fabric lossy, eqds)",
      {kConstruction}, [](const ExperimentConfig& e) -> Violation {
        if (e.faults.fails.empty()) return std::nullopt;
        const auto& t = e.configuration.transport;
        if (t.fidelity == core::network::Fidelity::analytic) return "fidelity is analytic";
        if (t.fidelity == core::network::Fidelity::fluid && core::network::spreads(t))
          return "fidelity is fluid, and packets choose among paths";
        if (e.faults.reconverge_us == 0) return "reconverge_us is 0";
        const bool lossy = core::network::transport_type(t).trims || t.fabric == core::network::Fabric::lossy;
        if (t.fidelity == core::network::Fidelity::packet && lossy && e.faults.retransmit_us > 0)
          return fmt::format(
              "retransmit_us is {:g}, and {}", e.faults.retransmit_us,
              core::network::transport_type(t).trims ? "the transport is " + t.kind : "the fabric is lossy");
        return std::nullopt;
      });
}

/// All packets of a step cross a cable that fails, and those that come after it depend on how.
Rule failing_cables_coupled_rule() {
  Rule result =
      rule("failing_cables_coupled", "faults.fails",
           "a step of packets whose cables fail needs composition coupled: it is one simulation of all its "
           "packets; fidelity fluid needs none",
           {kConstruction}, [](const ExperimentConfig& e) -> Violation {
             if (e.faults.fails.empty() || e.configuration.transport.fidelity != core::network::Fidelity::packet ||
                 e.configuration.composition == core::step::Composition::coupled)
               return std::nullopt;
             return "composition is composed";
           });
  result.steps_only = true;
  return result;
}

/// The lines of a tuner's table choose protocols, so that the library must have more than one. Algorithms of MSCCL have
/// one of their own, or none.
Rule tuner_protocol_rule() {
  return rule(
      "tuner_protocol", "collectives.tuner_file",
      "a tuner_file and msccl_files choose protocols, for which collectives.protocol must be calibrated or auto; "
      "without a tuner_file it may be none",
      {kConstruction}, [](const ExperimentConfig& e) -> Violation {
        const core::collective::Library& library = e.configuration.collectives;
        using core::collective::Protocol;
        const auto is_line = [](const auto& rule) { return !rule.given; };
        if (library.tuner_rules.empty() || library.protocol == Protocol::calibrated ||
            library.protocol == Protocol::automatic)
          return std::nullopt;
        if (library.protocol == Protocol::none &&
            std::none_of(library.tuner_rules.begin(), library.tuner_rules.end(), is_line))
          return std::nullopt;
        return fmt::format("protocol is {}", core::collective::name_of(library.protocol));
      });
}

Rule failures_fit_rule() {
  return {"failures_fit",
          "faults.fails must name cables with times, and leave all GPUs joined",
          "faults.fails",
          [](const ExperimentConfig& config, GraphCache& graphs) -> Violation {
            if (config.faults.fails.empty()) return std::nullopt;
            try {
              failures_of(config.faults, *graphs.get(config));
              return std::nullopt;
            } catch (const core::InputError& error) {
              return error.what();
            }
          },
          false,
          kConstruction,
          {"gpus_at_most", "node_in_scale_up_domain", "topology_fits", "faults_fit"}};
}

/// Acknowledgements that are packets join what goes one way with what goes the other, and depend on all of it.
Rule composed_acks_rule() {
  Rule result = rule("composed_acks", "transport",
                     "acknowledgements that are packets need composition coupled, or fidelity fluid or analytic",
                     {kConstruction}, [](const ExperimentConfig& e) -> Violation {
                       const auto& t = e.configuration.transport;
                       if (t.fidelity != core::network::Fidelity::packet ||
                           e.configuration.composition == core::step::Composition::coupled)
                         return std::nullopt;
                       if (core::network::transport_type(t).trims)
                         return t.kind + " sends them, and composition is composed";
                       if (t.acks != core::network::Acks::in_band) return std::nullopt;
                       return "acks in_band, composition composed";
                     });
  result.steps_only = true;
  return result;
}

}  // namespace

std::vector<Rule> transport_rules() {
  return {
      rule("pause_thresholds", "transport", "pfc_xon_bytes must be at most pfc_xoff_bytes, and that below buffer_bytes",
           {kPfc},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (t.pfc_xon_bytes <= t.pfc_xoff_bytes && t.pfc_xoff_bytes < t.buffer_bytes) return std::nullopt;
             return fmt::format("pfc_xon_bytes {}, pfc_xoff_bytes {}, buffer_bytes {}", t.pfc_xon_bytes,
                                t.pfc_xoff_bytes, t.buffer_bytes);
           }),
      rule("marking_thresholds", "transport", "ecn_kmin_bytes must be at most ecn_kmax_bytes",
           {"Zhu et al. 2015 (DCQCN), section 3.1: marking begins at Kmin and is sure at Kmax"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (!core::network::transport_type(t).marks || t.ecn_kmin_bytes <= t.ecn_kmax_bytes) return std::nullopt;
             return fmt::format("ecn_kmin_bytes {}, ecn_kmax_bytes {}", t.ecn_kmin_bytes, t.ecn_kmax_bytes);
           }),
      rule("rate_skipping", "skip.rate_tolerance",
           "fast-forwarding by rate needs pinned paths, packet fidelity and composition composed", {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             if (t.rate_tolerance_ppm == 0) return std::nullopt;
             if (t.fidelity != core::network::Fidelity::packet)
               return fmt::format("fidelity is {}", name_of(t.fidelity));
             if (core::network::needs_per_packet(t)) return "this transport simulates every packet (per_packet)";
             if (e.configuration.composition == core::step::Composition::coupled) return "composition is coupled";
             return std::nullopt;
           }),
      hashed_paths_rule(),
      failing_cables_rule(),
      tuner_protocol_rule(),
      rule("fluid_composed", "fidelity", "fidelity fluid needs composition composed: coupled is every packet of a step",
           {kConstruction},
           [](const ExperimentConfig& e) -> Violation {
             if (e.configuration.transport.fidelity != core::network::Fidelity::fluid ||
                 e.configuration.composition == core::step::Composition::composed)
               return std::nullopt;
             return "composition is coupled";
           }),
      rule("transport_options", "transport", "the options of a transport must fit each other",
           {"the transport's paper, named in docs/model/network.md"},
           [](const ExperimentConfig& e) -> Violation {
             const auto& t = e.configuration.transport;
             std::string fault = core::network::transport_type(t).fault(t);
             return fault.empty() ? std::nullopt : Violation(std::move(fault));
           }),
  };
}

std::vector<Rule> fabric_rules() {
  std::vector<Rule> all;
  all.push_back(fluid_routing_rule());
  all.push_back(composed_acks_rule());
  all.push_back(failing_cables_coupled_rule());
  all.push_back(graph_rule("topology_fits", "the topology must fit the cluster", "topology", false,
                           {"gpus_at_most", "node_in_scale_up_domain"}));
  all.push_back(graph_rule("faults_fit", "faults must name cables and leave all GPUs joined", "faults", true,
                           {"gpus_at_most", "node_in_scale_up_domain", "topology_fits"}));
  all.push_back(failures_fit_rule());
  all.push_back(lossless_rule());
  return all;
}

}  // namespace manyworlds::experiments
