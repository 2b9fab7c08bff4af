// The functions of all verbs, in the order in which registry.cpp lists them.
#pragma once

#include "farm/cli/command.hpp"

namespace manyworlds::farm::commands {

int run_sweep(const Invocation& invocation);
int run_resume(const Invocation& invocation);
int run_merge(const Invocation& invocation);
int run_run(const Invocation& invocation);
int run_net(const Invocation& invocation);
int run_stragglers(const Invocation& invocation);
int run_status(const Invocation& invocation);
int run_serve(const Invocation& invocation);
int run_top(const Invocation& invocation);
int run_compare(const Invocation& invocation);
int run_explain(const Invocation& invocation);
int run_search(const Invocation& invocation);
int run_report(const Invocation& invocation);
int run_export(const Invocation& invocation);
int run_diff(const Invocation& invocation);
int run_store(const Invocation& invocation);
int run_validate(const Invocation& invocation);
int run_slurm(const Invocation& invocation);
int run_list(const Invocation& invocation);
int run_schema(const Invocation& invocation);

}  // namespace manyworlds::farm::commands
