// The commands of the drover program: each function adds one, or a group of them, to the table.
#pragma once

#include "cli/command_table.h"

namespace drover {

void add_train_command(CommandTable& commands);
void add_launch_command(CommandTable& commands);
void add_serve_command(CommandTable& commands);
void add_worker_command(CommandTable& commands);
void add_runs_command(CommandTable& commands);
void add_export_command(CommandTable& commands);
void add_dashboard_command(CommandTable& commands);
void add_report_command(CommandTable& commands);
void add_checkpoint_commands(CommandTable& commands);
void add_data_commands(CommandTable& commands);
void add_doctor_command(CommandTable& commands);
void add_replay_command(CommandTable& commands);
void add_simulate_command(CommandTable& commands);
void add_experiment_command(CommandTable& commands);
void add_fit_command(CommandTable& commands);
void add_keys_commands(CommandTable& commands);
void add_policies_command(CommandTable& commands);

}  // namespace drover
