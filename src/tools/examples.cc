#include <map>
#include <string>

#include "tools/commands.h"

namespace tensorsmith::tools {
namespace {

// Examples by the words after "tensorsmith".
const std::map<std::string, std::string>& examples() {
  static const std::map<std::string, std::string> all = {
      {"",
       "  tensorsmith tune model.onnx\n"
       "  tensorsmith bench model_tuned\n"
       "  tensorsmith run model_tuned --check test_data_set_0\n"
       "Each command has --help."},
      {"tasks",
       "  tensorsmith tasks model.onnx --shape x=1x3x48x320\n"
       "  tensorsmith tasks zoo:resnet50 zoo:resnet18\n"
       "  tensorsmith tasks zoo:mobilenet_v2 --text"},
      {"tune",
       "  tensorsmith tune model.onnx\n"
       "  tensorsmith tune model.onnx -o tuned --seconds 10m     # continues from tensorsmith.db\n"
       "  tensorsmith tune model.onnx --dim batch=1 --dim sequence=128\n"
       "  tensorsmith tune a.onnx b.onnx -o tuned --until-gain 1%\n"
       "  tensorsmith tune model.onnx -o tuned --no-measure --device epyc-7763\n"
       "  tensorsmith tune zoo:resnet50:batch=4 -o tuned --threads 1 --trials 500 --db resnet.db\n"
       "  tensorsmith tune model.onnx --seconds 1h --report report.html --serve 8080"},
      {"transfer",
       "  tensorsmith transfer model.onnx -o fast --from tensorsmith.db\n"
       "  tensorsmith transfer zoo:resnet18 -o fast --from zoo:resnet50 --from zoo:vgg16 --db records.db\n"
       "  tensorsmith transfer model.onnx -o fast --from other_machine.db --pool --seconds 20"},
      {"compare",
       "  tensorsmith compare zoo:resnet18 --strategy evolutionary --strategy random --trials 64 --plot "
       "curves.svg\n"
       "  tensorsmith compare model.onnx --cost-model xgboost --cost-model mine.model --log runs.jsonl\n"
       "  tensorsmith compare --store records.store --split by_task.split --cost-model xgboost --cost-model "
       "none\n"
       "  tensorsmith compare --store records.store --share 10% --cost-model latency.model\n"
       "  tensorsmith compare zoo:resnet18 zoo:resnet50 --whole out --from records.db --seeds 1"},
      {"lm corpus",
       "  tensorsmith lm corpus zoo:resnet18 zoo:googlenet --device local:threads=1 -o programs.corpus\n"
       "  tensorsmith lm corpus --db tensorsmith.db --hold-out zoo:resnet50 -o programs.corpus"},
      {"lm pretrain", "  tensorsmith lm pretrain programs.corpus -o base.lm"},
      {"lm finetune", "  tensorsmith lm finetune base.lm programs.corpus --within 0.05 -o writer.lm"},
      {"lm generate", "  tensorsmith lm generate model.onnx --lm writer.lm --count 10 -o programs.jsonl"},
      {"lm measure", "  tensorsmith lm measure programs.jsonl --db tensorsmith.db"},
      {"worker",
       "  tensorsmith worker --db postgresql://tuner@server/records\n"
       "  tensorsmith worker --db postgresql://tuner@server/records --threads 1 --idle 600"},
      {"compile",
       "  tensorsmith compile model.onnx\n"
       "  tensorsmith compile model.onnx -o compiled --db tensorsmith.db --shape x=1x3x48x320\n"
       "  tensorsmith compile model.onnx -o compiled --device epyc-7763 --threads 8"},
      {"run",
       "  tensorsmith run compiled --input x=input.npy --output results\n"
       "  tensorsmith run compiled --check test_data_set_0\n"
       "  tensorsmith run compiled --reference model.onnx"},
      {"bench",
       "  tensorsmith bench compiled --threads 1\n"
       "  tensorsmith bench compiled --profile\n"
       "  tensorsmith bench compiled --trace runs.json --runs 5\n"
       "  tensorsmith bench model.onnx --untuned --shape x=1x3x48x320"},
      {"db",
       "  tensorsmith db info tensorsmith.db\n"
       "  tensorsmith db export tensorsmith.db records.jsonl --fastest 1\n"
       "  tensorsmith db import other.db records.jsonl"},
      {"db info", "  tensorsmith db info tensorsmith.db"},
      {"db copy",
       "  tensorsmith db copy tensorsmith.db postgresql://tuner@server/records\n"
       "  tensorsmith db copy postgresql://tuner@server/records own.db"},
      {"db check", "  tensorsmith db check tensorsmith.db"},
      {"db export",
       "  tensorsmith db export tensorsmith.db records.jsonl --fastest 1\n"
       "  tensorsmith db export tensorsmith.db convolutions.jsonl --task conv\n"
       "  tensorsmith db export tensorsmith.db resnet.jsonl --of zoo:resnet50"},
      {"db import", "  tensorsmith db import tensorsmith.db records.jsonl"},
      {"dataset",
       "  tensorsmith dataset collect --networks resnet18 -o records.db --seconds 600 --store records.store\n"
       "  tensorsmith dataset split records.store -o by_task.split\n"
       "  tensorsmith dataset stats records.store"},
      {"dataset collect",
       "  tensorsmith dataset collect --networks zoo -o records.db --seconds 3600\n"
       "  tensorsmith dataset collect --networks model.onnx --device local:isa=avx2 -o records.db --store "
       "records.store"},
      {"dataset import",
       "  tensorsmith dataset import tensorsmith.db -o own.store\n"
       "  tensorsmith dataset import v100.jsonl.zst k80.jsonl.zst --workloads workloads.json -o gpus.store\n"
       "  tensorsmith dataset import work_dir --device a100 -o a100.store"},
      {"dataset label",
       "  tensorsmith dataset label gpus.store --split new_gpu.split --model teacher.model --device v100 -o "
       "labelled.store"},
      {"dataset next",
       "  tensorsmith dataset next --model models/cpu.safetensors --device local:threads=1 --networks "
       "resnet50 bert_base\n"
       "  tensorsmith dataset next --model others.model --device v100 --store gpus.store --tasks 1"},
      {"dataset schema",
       "  tensorsmith dataset schema\n"
       "  tensorsmith dataset schema per-store"},
      {"dataset stats", "  tensorsmith dataset stats records.store"},
      {"dataset split",
       "  tensorsmith dataset split records.store -o by_task.split --test 0.2\n"
       "  tensorsmith dataset split gpus.store -o new_gpu.split --kind by-device --test-device v100"},
      {"dataset export", "  tensorsmith dataset export records.store -o records.jsonl"},
      {"dataset features",
       "  tensorsmith dataset features v100.jsonl.zst --workloads workloads.json -o features.jsonl"},
      {"profile",
       "  tensorsmith profile tensorsmith.db --device local:threads=1\n"
       "  tensorsmith profile zoo:bert_base --db bert.db --per-task 100"},
      {"profile import", "  tensorsmith profile import gpu.db launches.csv"},
      {"profile transfer",
       "  tensorsmith profile transfer bert.db --task matmul_add --task softmax --json > transfer.json"},
      {"report",
       "  tensorsmith report tensorsmith.db tuned -o report.html\n"
       "  tensorsmith report tensorsmith.db -o records.html\n"
       "  tensorsmith report tuned -o report.html --peers peers.json\n"
       "  tensorsmith report tensorsmith.db tuned --beside before.html -o both.html\n"
       "  tensorsmith report tensorsmith.db tuned --json"},
      {"explain", "  tensorsmith explain bert.db --task softmax --plot softmax.svg"},
      {"train",
       "  tensorsmith train --model xgboost --store records.store --split by_task.split -o latency.model\n"
       "  tensorsmith train --init latency.model --store more.store --split more.split -o tuned.model\n"
       "  tensorsmith train --from-db tensorsmith.db -o mine.model\n"
       "  tensorsmith train --features profile --from-db tensorsmith.db -o two_step.model\n"
       "  tensorsmith train --features profile --model profile --from-db tensorsmith.db -o profile.model"},
      {"eval",
       "  tensorsmith eval --model latency.model --store records.store --split by_task.split --plot "
       "latency.svg\n"
       "  tensorsmith eval --model latency.model --records v100.jsonl.zst --workloads workloads.json "
       "--device v100\n"
       "  tensorsmith eval --rounds 10 --model xgboost --model mlp --store records.store --split "
       "by_task.split\n"
       "  tensorsmith eval --model profile.model --from-db tensorsmith.db"},
      {"calibrate",
       "  tensorsmith calibrate --model latency.model --store records.store -o calibrated.model"},
      {"search-hyperparameters",
       "  tensorsmith search-hyperparameters --model xgboost --store records.store --split by_task.split \\\n"
       "    --tune max_depth=4..12 --tune eta=0.01..0.3:log --log trials.jsonl --trials 50"},
      {"devices",
       "  tensorsmith devices list\n"
       "  tensorsmith devices show local"},
      {"devices list", "  tensorsmith devices list --json"},
      {"devices show",
       "  tensorsmith devices show local --probe\n"
       "  tensorsmith devices show epyc-7763 > my_board.json"},
      {"predict",
       "  tensorsmith predict model.onnx\n"
       "  tensorsmith predict zoo:resnet50 --device epyc-7763 --threads 8 --untuned\n"
       "  tensorsmith predict model.onnx --model latency.model --db tensorsmith.db"},
      {"zoo",
       "  tensorsmith zoo list\n"
       "  tensorsmith zoo export resnet50 --batch 4 -o resnet50.onnx"},
      {"zoo list", "  tensorsmith zoo list --json"},
      {"help",
       "  tensorsmith help tune\n"
       "  tensorsmith help db export"},
      {"completion",
       "  source <(tensorsmith completion bash)\n"
       "  tensorsmith completion zsh > ~/.zfunc/_tensorsmith"},
      {"man",
       "  tensorsmith man db export | man -l -\n"
       "  tensorsmith man --all share/man/man1"},
      {"zoo export", "  tensorsmith zoo export bert_base --sequence 128 -o bert.onnx"},
  };
  return all;
}

void add_to(CLI::App& command, const std::string& words) {
  const auto found = examples().find(words);
  command.footer(found == examples().end() ? "" : "Examples:\n" + found->second);
  for (CLI::App* sub : command.get_subcommands([](const CLI::App*) { return true; }))
    add_to(*sub, words.empty() ? sub->get_name() : words + " " + sub->get_name());
}

}  // namespace

void add_examples(CLI::App& app) { add_to(app, ""); }

}  // namespace tensorsmith::tools
