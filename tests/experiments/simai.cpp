// Workloads of SimAI and AICB: what they say is what runs, and takes what its parts take.
#include "experiments/simai/collectives_file.hpp"
#include "experiments/simai/rank_groups.hpp"
#include "experiments/simai/workload.hpp"
#include "tests/experiments/given_steps.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds;
using namespace manyworlds::tests;
using namespace manyworlds::experiments;
using namespace manyworlds::experiments::programs;
using core::collective::Kind;
using workload::StepPart;

namespace {

const std::string kFolder = source_folder() + "/tests/experiments/simai/";

std::string header(const std::string& policy, const std::string& rest = "") {
  return policy +
         " model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0 "
         "checkpoint_initiates: 0" +
         rest + "\n";
}

std::vector<std::string> names_of(const StreamPrograms& programs, std::uint32_t program = 0) {
  std::vector<std::string> names;
  for (const StreamOp& op : programs.programs.at(program).ops) names.push_back(programs.names.at(op.name));
  return names;
}

}  // namespace

TEST_CASE("ranks of SimAI's groups are numbered as it numbers them") {
  using Groups = std::vector<std::vector<std::uint32_t>>;
  const simai::RankOrder order{8, 2, 2, 1};
  CHECK(order.groups(simai::GroupKind::tensor) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(order.groups(simai::GroupKind::expert) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(order.groups(simai::GroupKind::expert_data) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(order.groups(simai::GroupKind::data) == Groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  const simai::RankOrder staged{8, 2, 1, 2};
  CHECK(staged.groups(simai::GroupKind::data) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(staged.groups(simai::GroupKind::pipeline) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(staged.groups(simai::GroupKind::embedding) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(staged.groups(simai::GroupKind::all) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
}

TEST_CASE("a SimAI step takes its kernels, the communication that is waited for, and that of weights at its end") {
  const std::string text = header("HYBRID_TRANSFORMER") +
                           "2\n"
                           "a -1 1000 ALLREDUCE 65536 2000 NONE 0 3000 ALLREDUCE 1048576 100\n"
                           "b -1 4000 NONE 0 5000 ALLGATHER 32768 6000 NONE 0 100\n";
  for (const network::Fidelity fidelity : {network::Fidelity::packet, network::Fidelity::analytic}) {
    const step::StepResult step = step_of(simai::parse_workload(text, "w.txt").programs, fidelity);
    const std::string tp = "[0,1],[2,3],[4,5],[6,7]", dp = "[0,2,4,6],[1,3,5,7]";
    const Time reduce = alone("all_reduce", 65536, tp, 8, fidelity),
               gather = alone("all_gather", 32768, tp, 8, fidelity),
               weights = alone("all_reduce", 1048576, dp, 8, fidelity);
    CHECK(step.step_ps == 1000 * (1000 + 2000 + 3000 + 4000 + 5000 + 6000 + 3 * 100) + reduce + gather + weights);
    CHECK(step.breakdown[StepPart::forward] == Approx(5e-6));
    CHECK(step.breakdown[StepPart::backward] == Approx(16e-6));
    CHECK(step.breakdown[StepPart::exposed_tp] == Approx(static_cast<double>(reduce + gather) * 1e-12));
    CHECK(step.breakdown[StepPart::exposed_dp] == Approx(static_cast<double>(weights) * 1e-12));
  }
}

TEST_CASE("weights of a later layer communicate beside the kernels of earlier ones") {
  const std::string text = header("HYBRID_TRANSFORMER") +
                           "2\n"
                           "a -1 0 NONE 0 90000000 NONE 0 0 NONE 0 0\n"
                           "b -1 0 NONE 0 0 NONE 0 1000 ALLREDUCE 1048576 0\n";
  const step::StepResult step = step_of(simai::parse_workload(text, "w.txt").programs);
  CHECK(step.step_ps == Time{1000} * (90000000 + 1000));
  CHECK(step.breakdown[StepPart::exposed_dp] == 0);
}

TEST_CASE("layers that checkpoint have their forward passes run again from the checkpoint on") {
  std::string text = header("HYBRID_TRANSFORMER_FWD_IN_BCKWD");
  text.replace(text.find("checkpoints: 0 checkpoint_initiates: 0"), 38, "checkpoints: 1 0 checkpoint_initiates: 1 2");
  text += "3\n";
  for (const char* id : {"a", "b", "c"}) text += std::string(id) + " -1 1 ALLREDUCE 100 1 NONE 0 1 NONE 0 0\n";
  const StreamPrograms programs = simai::parse_workload(text, "w.txt").programs;
  CHECK(names_of(programs) ==
        std::vector<std::string>{"a forward", "a forward all_reduce", "b forward", "b forward all_reduce", "c forward",
                                 "c forward all_reduce", "a recomputed", "a recomputed all_reduce", "b recomputed",
                                 "b recomputed all_reduce", "c input gradient", "c weight gradient", "b input gradient",
                                 "b weight gradient", "a input gradient", "a weight gradient"});
  CHECK(std::get<Communication>(programs.programs[0].ops[1].work).bytes == 4096);  // SimAI's least
}

TEST_CASE("the policies DATA, MODEL and DISTRIBUTED_INFERENCE run their passes as SimAI does") {
  const std::string layers =
      "2\na -1 1 ALLREDUCE 8 1 ALLREDUCE 8 1 ALLREDUCE 8 0\nb -1 1 ALLREDUCE 8 1 ALLREDUCE 8 1 ALLREDUCE 8 0\n";
  const auto run = [&](const std::string& policy) {
    return names_of(simai::parse_workload(policy + " all_gpus: 4\n" + layers, "w.txt").programs);
  };
  CHECK(run("DATA") == std::vector<std::string>{"a forward", "b forward", "b weight gradient",
                                                "b weight gradient all_reduce", "b input gradient", "a weight gradient",
                                                "a weight gradient all_reduce", "end of weight gradients"});
  CHECK(run("MODEL") == std::vector<std::string>{"a forward", "a forward all_reduce", "b forward",
                                                 "b forward all_reduce", "b input gradient",
                                                 "b input gradient all_reduce", "b weight gradient", "a input gradient",
                                                 "a weight gradient"});
  CHECK(run("DISTRIBUTED_INFERENCE") ==
        std::vector<std::string>{"a forward", "a forward all_reduce", "b forward", "b forward all_reduce"});
  const auto model = simai::parse_workload("MODEL all_gpus: 4\n" + layers, "w.txt").programs.programs[0].ops;
  CHECK(model[6].after == std::vector<std::uint32_t>{});   // the weight gradient does not wait for the communication
  CHECK(model[7].after == std::vector<std::uint32_t>{5});  // the next layer does
}

TEST_CASE("what SimAI and AICB give is read unchanged") {
  const Imported gpt = simai::read_workload(kFolder + "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt", {128});
  CHECK(gpt.programs.ranks.program_of_rank == std::vector<std::uint32_t>(128, 0));
  CHECK(step_of(gpt.programs).step_ps > 0);
  const Imported large = simai::read_workload(kFolder + "G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt", {128});
  CHECK(step_of(large.programs).breakdown[StepPart::exposed_tp] > 0);
  const Imported micro = simai::read_workload(kFolder + "microAllReduce.txt");
  CHECK(step_of(micro.programs).step_ps == Time{2} * (556000 + 2 + 1) * 1000 +
                                               alone("all_reduce", 16777216, "[0,1,2,3,4,5,6,7]", 8) +
                                               alone("all_reduce", 67108864, "[0,1,2,3,4,5,6,7]", 8));
  const Imported sizes = simai::read_workload(kFolder + "all_reduce.txt", {8});
  CHECK(sizes.programs.programs[0].ops.size() == 2 * 19);  // each with its process time
  const Imported table = simai::read_collectives(kFolder + "G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv");
  CHECK(table.programs.ranks.program_of_rank.size() == 128);
  // 2 broadcasts, embedding, 80 + 80 of 40 layers, 3 of cross entropy, the loss, embedding, 3 of the optimizer and one
  // of 0 bytes.
  CHECK(table.programs.programs[0].ops.size() == 2 + 1 + 80 + 3 + 1 + 80 + 1 + 3);
  CHECK(step_of(table.programs).breakdown[StepPart::exposed_tp] > 0);
}

TEST_CASE("a table of stages has a program each, whose transfers meet") {
  const std::string columns =
      "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,count\n";
  const std::string end = "CommType.epoch_end,None,None,0,,None,None,,None,1\n";
  const auto transfer = [](const std::string& type, const std::string& to) {
    return "CommType." + type + ",CommGroup.pp_group,1,4096,f,None,None," + to + ",None,1\n";
  };
  const std::string text = "[ pp_stage0: [rank0, rank1] ]\n" + columns +
                           "CommType.computation,None,None,((64, 32), (32, 16)),gemm,None,None,,5000,1\n" +
                           transfer("isend", "send_next") + transfer("irecv", "recv_next") + end +
                           "[ pp_stage1: [rank2 ~ rank3] ]\n" + columns + transfer("irecv", "recv_prev") +
                           "CommType.all_reduce,CommGroup.tp_group,2,4096,f,None,None,,None,1\n" +
                           transfer("isend", "send_prev") + transfer("isend", "send_next") + end;
  const Imported imported = simai::parse_collectives(text, "t.csv");
  CHECK(imported.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0, 1, 1});
  const auto send = [](const std::string& groups) {
    return "{\"manyworlds_program\":1,\"name\":\"one\"}\n{\"dimension\":\"c\",\"kind\":\"pairs\"}\n{\"groups\":\"c\","
           "\"ranks\":[" +
           groups +
           "]}\n{\"program\":\"p\",\"ranks\":\"0-1\",\"streams\":[\"s\"]}\n{\"send\":\"c\","
           "\"bytes\":4096,\"stream\":\"s\"}\n{\"program\":\"q\",\"ranks\":\"2-3\",\"streams\":[\"s\"]}\n{\"receive\":"
           "\"c\",\"bytes\":4096,\"stream\":\"s\"}\n";
  };
  const Time one = step_of(parse_program_file(send("[0,2],[1,3]"), "one")).step_ps;
  CHECK(step_of(imported.programs).step_ps == 5'000'000 + 2 * one + alone("all_reduce", 4096, "[0,1],[2,3]", 4));
  CHECK(imported.account.front() == "1 transfers that the first or the last stage does not have are left out");
}

TEST_CASE("sizes of groups that an AICB table says in its set-up, or nowhere, are not taken for one") {
  const std::string columns = "comm_type,comm_group,comm_group_size,msg_size,stage,additional\n";
  const std::string end = "CommType.epoch_end,None,None,0,,\n";
  const auto row = [](const std::string& type, const std::string& group, const std::string& size,
                      const std::string& more = "") {
    return "CommType." + type + ",CommGroup." + group + "," + size + ",4096,f," + more + "\n";
  };
  const auto read = [](const std::string& text, const simai::RunOptions& options = {}) {
    return simai::parse_collectives(text, "t.csv", options);
  };
  // Set-up alone says that there are two stages; both lists have the neighbours of a middle stage, of which each has
  // one.
  const std::string set_up = columns + row("all_reduce", "dp_group", "2") + row("all_reduce", "pp_group", "2") + end;
  const std::string step = row("irecv", "pp_group", "1", "recv_prev") + row("all_reduce", "tp_group", "2") +
                           row("isend", "pp_group", "1", "send_next");
  const Imported staged = read(set_up + step + end);
  CHECK(staged.programs.ranks.program_of_rank == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(names_of(staged.programs, 0) == std::vector<std::string>{"f all_reduce", "f send"});
  CHECK(names_of(staged.programs, 1) == std::vector<std::string>{"f receive", "f all_reduce"});
  // AICB writes no size for experts.
  const std::string experts =
      columns + row("all_reduce", "dp_group", "8") + row("all_to_all", "ep_group", "None") + end;
  CHECK(error_of([&] { read(experts); }) ==
        "t.csv:3: has a row of a group whose size no row says (comm_group_size); give it beside the table: "
        "--group-sizes ep=N");
  const Imported given = read(experts, {std::nullopt, {0, 4, 0}});
  CHECK(given.programs.ranks.dimensions[1].name == "expert");
  CHECK(given.programs.ranks.groups[1].ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(error_of([&] { read(experts, {std::nullopt, {0, 3, 0}}); }).find("t.csv: 3 expert-parallel ranks do not") == 0);
  CHECK(error_of([&] { read(set_up + step, {std::nullopt, {0, 0, 4}}); }) == "t.csv: has pp 2, and --group-sizes 4");
  // What rank 0 of a job with stages issues says nothing of the other stages.
  CHECK(error_of([&] {
          read(set_up + row("isend", "pp_group", "1", "send_next"));
        }).find("t.csv:5: has transfers with the next stage alone: it is the table of one stage") == 0);
  CHECK(error_of([&] {
          read(columns + row("all_reduce", "dp_group", "1"));
        }).find("t.csv:2: has nothing that takes time in its last epoch") == 0);
  CHECK(error_of([] { simai::parse_group_sizes("tp=2,xp=4", "--group-sizes"); }) ==
        "--group-sizes: must be sizes of groups, as in tp=2,ep=8,pp=4, each once and from 1 to 1048576, not "
        "'tp=2,xp=4'");
  const simai::GroupSizes sizes = simai::parse_group_sizes("pp=4,tp=2", "--group-sizes");
  CHECK((sizes.tp == 2 && sizes.ep == 0 && sizes.pp == 4));
}

TEST_CASE("a table of AICB whose last epoch has no end is told to be one that may be cut") {
  const std::string set_up =
      "comm_type,comm_group,comm_group_size,msg_size\nCommType.all_reduce,CommGroup.dp_group,2,8\n"
      "CommType.epoch_end,None,None,0\n";
  const std::string step = "CommType.reduce_scatter,CommGroup.dp_group,2,8\n";
  const auto account = [](const std::string& text) { return simai::parse_collectives(text, "t.csv").account; };
  CHECK(account(set_up + step).front() ==
        "no epoch_end stands behind the last epoch, from line 4 on: it is taken as a whole step, of which rows lack if "
        "the table was cut");
  CHECK(account(set_up + step + "CommType.epoch_end,None,None,0\n").front() ==
        "1 operations of epochs before the last one are left out");
}

TEST_CASE("shapes of a product are read with commas and, as AICB writes a CSV, with blanks") {
  const std::string columns = "comm_type,comm_group,comm_group_size,msg_size\n";
  for (const std::string shapes : {"((4096, 1, 2048), (2048, 512))", "((4096 1 2048) (2048 512))"}) {
    const Imported read =
        simai::parse_collectives(columns + "CommType.computation,None,None," + shapes + "\n", "t.csv", {8});
    const auto& kernel = std::get<KernelWork>(read.programs.programs[0].ops[0].work);
    REQUIRE(kernel.shape.gemm);
    CHECK((kernel.shape.gemm->m == 4096 && kernel.shape.gemm->k == 2048 && kernel.shape.gemm->n == 512));
  }
}

TEST_CASE("a SimAI header is read as AICB writes it: whole numbers as floats, no micro-batch, inference") {
  const std::string layer = "1\na -1 5 NONE 0 0 NONE 0 0 NONE 0 0\n";
  const auto account_of = [&](const std::string& rest) {
    return simai::parse_workload("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 2 " + rest +
                                     "all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\n" + layer,
                                 "w.txt")
        .account;
  };
  CHECK(account_of("vpp: 1 ga: 4 pp_comm: 2097152.0 ").back().find("8 transfers of 2097152 bytes") !=
        std::string::npos);
  CHECK(account_of("ga: 0 ").back().find("'ga: 0' of the header") == 0);
  CHECK(account_of("mode: 1 ").front().find("'mode: 1' of the header: inference") == 0);
  CHECK(account_of("words: 5 ").front() == "'words' of the header is not known, and not followed");
  CHECK(account_of("words: 5 ")[1].find("HYBRID_TRANSFORMER_FWD_IN_BCKWD: 1 layers") == 0);
  CHECK(error_of([&] { account_of("pp_comm: 2097152.5 "); }).find("w.txt:1: 'pp_comm' must be an integer") == 0);
}

TEST_CASE("a mixture of experts on 9,216 GPUs is read and run as one program") {
  std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 pp: 12 vpp: 8 ga: 24 all_gpus: 9216 "
      "checkpoints: 0 checkpoint_initiates: 0 pp_comm 50331648\n218\ngrad -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER_DP_EP "
      "38654705664 100\ngather -1 1 NONE 0 1 NONE 0 1 ALLGATHER 2807758848 100\n";
  for (int layer = 0; layer < 24; ++layer) {
    text += "attention -1 1750840 ALLGATHER 50331648 875420 REDUCESCATTER 0 875420 NONE 0 100\n";
    for (int part = 0; part < 8; ++part)
      text += "mlp_moelayer -1 1 ALLTOALL_EP 100663296 1 ALLTOALL_EP 100663296 1 NONE 0 100\n";
  }
  const Imported imported = simai::parse_workload(text, "w.txt");
  const core::workload::GivenRanks& ranks = imported.programs.ranks;
  CHECK(imported.programs.programs.size() == 1);
  std::map<std::string, std::size_t> groups, members;
  for (const auto& group : ranks.groups) {
    ++groups[ranks.dimensions[group.dimension].name];
    members[ranks.dimensions[group.dimension].name] = group.ranks.size();
  }
  CHECK(groups ==
        std::map<std::string, std::size_t>{{"tensor", 4608}, {"expert", 576}, {"data", 24}, {"expert_data", 384}});
  CHECK(members ==
        std::map<std::string, std::size_t>{{"tensor", 2}, {"expert", 16}, {"data", 384}, {"expert_data", 24}});
  const step::StepResult step = step_of(imported.programs);
  CHECK(step.breakdown[StepPart::exposed_ep] > 0);
  CHECK(step.breakdown[StepPart::exposed_dp] > 0);
}

TEST_CASE("what is wrong in a SimAI workload is said with its line") {
  const auto error = [](const std::string& text) { return error_of([&] { simai::parse_workload(text, "w.txt"); }); };
  const std::string layer = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
  CHECK(error("") == "w.txt: is empty; the first line must have SimAI's policy");
  CHECK(error("HYBRID_DLRM\n").find("w.txt:1: SimAI's policy 'HYBRID_DLRM' is not read; known are HYBRID_TRANS") == 0);
  CHECK(error("MICRO\n1\n" + layer).find("w.txt:1: does not say how many GPUs") == 0);
  CHECK(error(header("DATA") + "2\n" + layer) ==
        "w.txt:3: has 1 of 2 layers: the file is cut, or its second line is wrong");
  CHECK(error(header("DATA") + "1\na -1 1\n").find("w.txt:3: a layer has 12 words") == 0);
  CHECK(error(header("DATA") + "1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1\n").find("w.txt:3: the compute time of forward") ==
        0);
  CHECK(error(header("DATA") + "1\na -1 1 GATHER 5 1 NONE 0 1 NONE 0 1\n").find("'GATHER' is no type") !=
        std::string::npos);
  CHECK(error(header("DATA") + "1\na -1 1 ALLGATHER_XP 5 1 NONE 0 1 NONE 0 1\n").find("_DP_EP behind") !=
        std::string::npos);
  CHECK(
      error("HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 8\n1\n" + layer).find("w.txt:1: 8 GPUs are no") ==
      0);
  CHECK(error("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 3 all_gpus: 8\n1\n" + layer).find("do not divide") !=
        std::string::npos);
  CHECK(
      error("HYBRID_TRANSFORMER_FWD_IN_BCKWD all_gpus: 8 checkpoint_initiates: 1 0\n1\n" + layer).find("without end") !=
      std::string::npos);
  CHECK(error("HYBRID_TRANSFORMER_FWD_IN_BCKWD all_gpus: 8 checkpoints: 9 0\n1\n" + layer).find("promises 9") !=
        std::string::npos);
  const Imported told =
      simai::parse_workload(header("HYBRID_TRANSFORMER", " tokens: 5") + "1\n" + layer + layer, "w.txt");
  CHECK(told.account[0] == "'tokens' of the header is not known, and not followed");
}

TEST_CASE("what is wrong in an AICB table is said with its line") {
  const auto error = [](const std::string& text) { return error_of([&] { simai::parse_collectives(text, "t.csv"); }); };
  const std::string columns = "comm_type,comm_group,comm_group_size,msg_size\n";
  CHECK(error("") == "t.csv: has no operation of an epoch");
  CHECK(error(columns + "CommType.all_reduce,CommGroup.tp_group,2\n").find("t.csv:2: has 3 fields") == 0);
  CHECK(error(columns + "CommType.gather,CommGroup.tp_group,2,8\n").find("t.csv:2: 'gather' is no operation") == 0);
  CHECK(error(columns + "CommType.all_reduce,CommGroup.x,2,8\n").find("t.csv:2: 'x' is no group") == 0);
  CHECK(error(columns + "CommType.all_reduce,CommGroup.tp_group,2,-8\n").find("'msg_size' must be") !=
        std::string::npos);
  CHECK(error(columns + "CommType.all_reduce,CommGroup.tp_group,2,8\n").find("does not say how many ranks") !=
        std::string::npos);
  CHECK(error("[rank0 ~ rank6]\n" + columns + "CommType.all_reduce,CommGroup.tp_group,2,8\n").find("7 GPUs are no") !=
        std::string::npos);
  CHECK(error("[rank0 ~ rank7]\n" + columns + "CommType.all_reduce,CommGroup.tp_group,2,8\n" +
              "CommType.all_reduce,CommGroup.tp_group,4,8\n")
            .find("t.csv:4: has a group of 4 ranks, and line 3 one of 2") == 0);
  CHECK(error("[rank0 ~ rank7]\n" + columns + "CommType.computation,None,None,(8, 8)\n").find("needs the shapes") !=
        std::string::npos);
}
