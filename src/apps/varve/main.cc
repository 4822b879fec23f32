// The varve program: reads the command line and hands over.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "apps/varve/broker_command.h"
#include "apps/varve/exit_codes.h"
#include "apps/varve/inspect_command.h"
#include "apps/varve/version.h"

namespace {

using namespace varve::apps;

void add_broker(CLI::App& program, BrokerOptions& options) {
  CLI::App* broker =
      program.add_subcommand("broker", "Runs a broker until SIGTERM (settings: docs/configuration.md)");
  broker->add_option("--config", options.config_file,
                     "File of name=value lines; the environment wins over it");
  broker->add_flag("--print-configuration-docs", options.print_configuration_docs,
                   "Prints docs/configuration.md and ends");
}

void add_inspect(CLI::App& program, InspectOptions& options) {
  CLI::App* inspect = program.add_subcommand("inspect", "Prints what is stored, as text");
  inspect->require_subcommand(1);
  inspect->add_option("--namespace", options.key_namespace, "First part of the objects' keys")
      ->envname("KAFSCALE_S3_NAMESPACE");
  CLI::App* object =
      inspect->add_subcommand("object", "A WAL object: header, runs, and whether its bytes are sound");
  object->add_option("file", options.file, "The object's file")->required();
  object->callback([&options] { options.what = InspectOptions::What::kObject; });
  CLI::App* snapshot =
      inspect->add_subcommand("snapshot", "A snapshot of the cluster state, from its manifest");
  snapshot->add_option("file", options.file,
                       "The manifest's file; without one, the newest of the data folder");
  snapshot->add_option("--data-dir", options.data_folder, "The broker's data folder")
      ->envname("KAFSCALE_DATA_DIR");
  snapshot->callback([&options] { options.what = InspectOptions::What::kSnapshot; });
  CLI::App* log = inspect->add_subcommand("log", "Entries of the metadata log, one a line");
  log->add_option("--data-dir", options.data_folder, "The data folder of a stopped broker")
      ->envname("KAFSCALE_DATA_DIR");
  log->add_option("--admin", options.admin,
                  "host:port of a running broker's HTTP port; then no folder is read");
  log->add_option("--after", options.after, "Only entries after this position");
  log->add_option("--limit", options.limit, "At most so many entries");
  log->callback([&options] { options.what = InspectOptions::What::kLog; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("varve: a Kafka-protocol streaming platform with no disks and no leaders");
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  BrokerOptions broker;
  InspectOptions inspect;
  add_broker(program, broker);
  add_inspect(program, inspect);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? kExitDone : kExitUsage;
  }
  if (program.got_subcommand("broker")) return run_broker(broker);
  return run_inspect(inspect);
}
