// A checkpoint restores the saved state for any boundaries of blocks. Damage is found and named. A
// kill leaves a complete checkpoint or none.
#include "store/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/random_draw.h"
#include "core/test_text.h"
#include "store/test_run.h"

namespace drover {
namespace {

using ::testing::AllOf;
using ::testing::Ne;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr size_t kArrays = CheckpointFile::kArrays.size();

// The whole state of a run in four flat buffers, to compare with.
struct Everything {
  Layout layout;
  std::array<std::vector<float>, kArrays> flat;
  uint64_t updates = 0;
};

Everything everything(uint64_t seed, uint32_t tensors_max = 12) {
  std::mt19937_64 random(seed);
  std::vector<TensorSpec> tensors;
  const size_t count = 1 + random() % tensors_max;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t rows = 1 + random() % 40;
    const uint64_t columns = 1 + random() % 60;
    tensors.push_back({.name = "tensor." + std::to_string(i),
                       .size = rows * columns,
                       .kind = TensorKind::kTrained,
                       .rate = random() % 4 == 0 ? 2.0 : 1.0,
                       .decay = 1.0,
                       .shape = {rows, columns}});
  }
  Everything all{.layout = Layout(tensors), .flat = {}, .updates = random() % 1000};
  for (auto& values : all.flat) {
    values.assign(all.layout.buffer_size(), 0.0F);
    for (size_t tensor = 0; tensor < count; ++tensor) {
      for (uint64_t i = 0; i < tensors[tensor].size; ++i)
        values[all.layout.offset(tensor) + i] = static_cast<float>(random() % 1000) - 500.0F;
    }
  }
  return all;
}

SavedBlock block_of(const Everything& all, const Block& place) {
  SavedBlock block{.offset = place.offset,
                   .length = place.length,
                   .updates = all.updates,
                   .beta1_power = 1.0 / (1.0 + static_cast<double>(all.updates)),
                   .beta2_power = 0x1.fffffp-3};
  const auto buffers = buffers_of(block);
  for (size_t array = 0; array < kArrays; ++array) {
    auto values = std::make_shared<FloatBuffer>(place.length);
    std::copy_n(all.flat[array].begin() + static_cast<std::ptrdiff_t>(place.offset), place.length,
                values->data());
    *buffers[array] = values;
  }
  return block;
}

CheckpointManifest manifest_of(const Everything& all, Version step) {
  return {.step = step,
          .run = 0xfedcba9876543210,
          .seed = 7,
          .workers = 4,
          .when = "2026-11-16T12:00:00Z",
          .settings = {{"optimizer", "adamw"}, {"beta1", "0.9"}},
          .noise = {.signal = 0.1, .noise = 1.0 / 3.0, .steps = 12},
          .tensors = all.layout.tensors(),
          .files = {}};
}

// Writes a checkpoint like a run: one part for each shard, then the manifest.
Status save(const Everything& all, const std::string& dir, Version step, uint32_t shards,
            const KeepWriting& keep_writing = {}) {
  const std::string folder = checkpoint_folder(dir, step);
  if (const Status made = make_folder(folder, keep_writing); !made) return made;
  CheckpointManifest manifest = manifest_of(all, step);
  const BlockPlan plan = plan_blocks(all.layout, shards, 500);
  for (ShardId shard = 0; shard < shards; ++shard) {
    CheckpointPart part{.shard = shard, .version = step, .blocks = {}};
    for (const BlockId id : plan.blocks_of_shard(shard))
      part.blocks.push_back(block_of(all, plan.blocks[id]));
    const auto entry = write_checkpoint_part(part, folder, keep_writing);
    if (!entry) return entry.error();
    manifest.files.push_back(entry.value());
  }
  return write_manifest(manifest, folder, keep_writing);
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The error of opening and verifying a checkpoint; empty: none.
std::string trouble_with(const std::string& folder) {
  const auto opened = Checkpoint::open(folder);
  if (!opened) return opened.error().message;
  const Status verified = opened.value().verify();
  return verified ? "" : verified.error().message;
}

std::vector<Version> steps_in(const std::string& dir) {
  std::vector<Version> steps;
  const auto found = list_checkpoints(dir, true);
  if (!found) return steps;
  for (const CheckpointFound& each : found.value()) {
    if (each.checkpoint) steps.push_back(each.step);
  }
  return steps;
}

TEST(Checkpoint, RestoresTheSavedStateForAnyBlockBoundaries) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const TempFolder folder;
    const Everything all = everything(seed);
    const auto shards = static_cast<uint32_t>(1 + seed % 4);
    DROVER_EXPECT_OK(save(all, folder.file("ck"), 20, shards));
    const auto newest = newest_checkpoint(folder.file("ck"));
    ASSERT_TRUE(newest.ok()) << newest.error().message;
    ASSERT_TRUE(newest.value().checkpoint.has_value());
    const Checkpoint& saved = *newest.value().checkpoint;
    EXPECT_EQ(saved.layout(), all.layout);
    CheckpointManifest expected = manifest_of(all, 20);
    expected.files = saved.manifest().files;
    EXPECT_EQ(saved.manifest(), expected);

    // Other blocks on another number of shards, one shard after the other.
    const auto now = static_cast<uint32_t>(1 + draw({seed, 1}) % 5);
    const BlockPlan plan =
        plan_blocks(all.layout, now, static_cast<uint32_t>(100 + draw({seed, 2}) % 900));
    size_t seen = 0;
    for (ShardId shard = 0; shard < now; ++shard) {
      std::vector<Block> mine;
      for (const BlockId id : plan.blocks_of_shard(shard)) mine.push_back(plan.blocks[id]);
      const auto read = saved.read(mine);
      ASSERT_TRUE(read.ok()) << read.error().message;
      ASSERT_EQ(read.value().size(), mine.size());
      for (const SavedBlock& block : read.value()) {
        ++seen;
        EXPECT_EQ(block.updates, all.updates);
        EXPECT_EQ(block.beta1_power, 1.0 / (1.0 + static_cast<double>(all.updates)));
        EXPECT_EQ(block.beta2_power, 0x1.fffffp-3);
        const auto buffers = buffers_of(block);
        for (size_t array = 0; array < kArrays; ++array) {
          const auto values = (*buffers[array])->span();
          EXPECT_TRUE(
              std::equal(values.begin(), values.end(),
                         all.flat[array].begin() + static_cast<std::ptrdiff_t>(block.offset)));
        }
      }
    }
    EXPECT_EQ(seen, plan.blocks.size());
  }
}

TEST(Checkpoint, ABlockHasOnlyTheArraysOfItsOptimiser) {
  const TempFolder folder;
  const Everything all = everything(1, 1);
  SavedBlock block =
      block_of(all, {.offset = 0, .length = static_cast<uint32_t>(all.layout.buffer_size())});
  block.momentum = block.squares = block.average = nullptr;
  DROVER_EXPECT_OK(make_folder(folder.file("a")));
  const auto entry =
      write_checkpoint_part({.shard = 0, .version = 3, .blocks = {block}}, folder.file("a"));
  ASSERT_TRUE(entry.ok());
  const auto file = CheckpointFile::open(folder.file("a"), entry.value());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file.value().blocks()[0].arrays[0]);
  EXPECT_FALSE(file.value().blocks()[0].arrays[1]);
  EXPECT_FALSE(file.value().blocks()[0].arrays[3]);
}

// Blocks may have different numbers of updates (a block without contribution in a step). A block
// that joins several gets the largest number.
TEST(Checkpoint, JoinedBlocksGetTheLargestNumberOfUpdates) {
  const TempFolder folder;
  const Everything all = everything(3, 1);
  const auto length = static_cast<uint32_t>(all.layout.parameter_count());
  ASSERT_GT(length, 2u);
  SavedBlock first = block_of(all, {.offset = 0, .length = length / 2});
  SavedBlock second = block_of(all, {.offset = length / 2, .length = length - length / 2});
  first.updates = 9;
  first.beta1_power = 0.5;
  second.updates = 8;
  const std::string at = checkpoint_folder(folder.file("ck"), 10);
  DROVER_EXPECT_OK(make_folder(at));
  const auto entry =
      write_checkpoint_part({.shard = 0, .version = 10, .blocks = {first, second}}, at);
  CheckpointManifest manifest = manifest_of(all, 10);
  manifest.files = {entry.value()};
  DROVER_EXPECT_OK(write_manifest(manifest, at));
  const auto read = Checkpoint::open(at).value().read(
      std::vector<Block>{{.id = 0, .offset = 0, .length = length}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value()[0].updates, 9u);
  EXPECT_EQ(read.value()[0].beta1_power, 0.5);
}

// The state of a guard belongs to a whole block: it is restored for the same block and no other.
TEST(Checkpoint, AGuardsStateIsRestoredOnlyForTheSameBlock) {
  const TempFolder folder;
  const Everything all = everything(3, 1);
  const auto length = static_cast<uint32_t>(all.layout.parameter_count());
  SavedBlock whole = block_of(all, {.offset = 0, .length = length});
  whole.lengths = {0.0F, 1.5F, -0.0F, 3.25e-38F, 1e30F};
  const std::string at = checkpoint_folder(folder.file("ck"), 10);
  DROVER_EXPECT_OK(make_folder(at));
  const auto entry = write_checkpoint_part({.shard = 0, .version = 10, .blocks = {whole}}, at);
  CheckpointManifest manifest = manifest_of(all, 10);
  manifest.files = {entry.value()};
  DROVER_EXPECT_OK(write_manifest(manifest, at));
  const Checkpoint checkpoint = Checkpoint::open(at).value();
  const auto same = checkpoint.read(std::vector<Block>{{.id = 0, .offset = 0, .length = length}});
  EXPECT_EQ(same.value().at(0).lengths, whole.lengths);
  const auto half =
      checkpoint.read(std::vector<Block>{{.id = 0, .offset = 0, .length = length / 2}});
  EXPECT_TRUE(half.value().at(0).lengths.empty());
}

TEST(Checkpoint, AnyFlippedBitIsDetectedAndNamed) {
  const TempFolder folder;
  const Everything all = everything(5);
  DROVER_EXPECT_OK(save(all, folder.file("ck"), 20, 2));
  const fs::path at = checkpoint_folder(folder.file("ck"), 20);
  const auto before = read_manifest(at.string());
  for (const std::string name : {"shard-0.safetensors", "shard-1.safetensors", kManifestName}) {
    const std::string good = read_text(at / name);
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(name + " " + std::to_string(seed));
      std::string bad = good;
      const size_t place = draw({seed, 3}) % bad.size();
      bad[place] = static_cast<char>(bad[place] ^ (1 << (draw({seed, 4}) % 8)));
      write_text(at / name, bad);
      const std::string trouble = trouble_with(at.string());
      // 1e-08 may become 1E-08, which is the same number.
      if (name == kManifestName && trouble.empty()) {
        EXPECT_EQ(read_manifest(at.string()).value(), before.value());
        continue;
      }
      EXPECT_NE(trouble.find(name), std::string::npos) << trouble;
    }
    write_text(at / name, good);
  }
  EXPECT_EQ(trouble_with(at.string()), "");
}

TEST(Checkpoint, ATruncatedOrMissingFileIsNamed) {
  const TempFolder folder;
  DROVER_EXPECT_OK(save(everything(6), folder.file("ck"), 20, 2));
  const fs::path at = checkpoint_folder(folder.file("ck"), 20);
  for (const std::string name : {"shard-1.safetensors", kManifestName}) {
    const std::string good = read_text(at / name);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE(name + " " + std::to_string(seed));
      const size_t left = draw({seed, 5}) % (good.size() - 1);
      write_text(at / name, good.substr(0, left));
      EXPECT_NE(trouble_with(at.string()).find(name), std::string::npos);
    }
    fs::remove(at / name);
    EXPECT_NE(trouble_with(at.string()).find(name), std::string::npos);
    write_text(at / name, good);
  }
}

// A header with a valid checksum and false lengths: no memory is allocated for them.
TEST(Checkpoint, FalseLengthsAreRefused) {
  const TempFolder folder;
  const auto trouble = [&](uint64_t length, const std::string& header, size_t data) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    bytes += header + std::string(data, '\0');
    write_text(folder.path() / "part", bytes);
    const size_t header_bytes =
        std::min<size_t>(8 + header.size(), 8 + std::min<uint64_t>(length, 1 << 20));
    const auto file = CheckpointFile::open(
        folder.path().string(),
        {.name = "part",
         .bytes = bytes.size(),
         .checksum = checksum_of(std::as_bytes(std::span(bytes)).first(header_bytes))});
    return file ? std::string() : file.error().message;
  };
  const auto header = [](const std::string& block, const std::string& offsets) {
    return R"({"__metadata__":{"format":"drover checkpoint 1","shard":"0","step":"1",)"
           R"("block.000000000000":")" +
           block + R"(","crc32.parameters.000000000000":"00000000"},)" +
           R"("parameters.000000000000":{"dtype":"F32","shape":[4],"data_offsets":)" + offsets +
           "}}";
  };
  const std::string fine = header("4 1 0 0", "[0,16]");
  EXPECT_EQ(trouble(fine.size(), fine, 16), "");
  const std::string too_long = trouble(~uint64_t{0}, fine, 16);
  EXPECT_THAT(too_long, mentions(folder.file("part")));
  EXPECT_EQ(trouble(fine.size() + 17, fine, 16), too_long);
  for (const auto& [block, offsets] :
       std::vector<std::pair<std::string, std::string>>{{"4 1 0 0", "[0,17]"},
                                                        {"4 1 0 0", "[16,32]"},
                                                        {"4 1 0 0", "[16,0]"},
                                                        {"4 1 0 0", "[-16,0]"},
                                                        {"4 1 0 0", "[0,18446744073709551615]"},
                                                        {"4 1 0 0", "[0,16.5]"},
                                                        {"4 1 0 0", "[0,1e30]"},
                                                        {"4 1 0 0", "[]"},
                                                        {"4 1 0 0", "7"},
                                                        {"4294967295 1 0 0", "[0,16]"},
                                                        {"0 1 0 0", "[0,0]"},
                                                        {"99999999999 1 0 0", "[0,16]"},
                                                        {"4 1 0", "[0,16]"},
                                                        {"", "[0,16]"}}) {
    const std::string false_header = header(block, offsets);
    const std::string message = trouble(false_header.size(), false_header, 16);
    EXPECT_THAT(message, mentions(folder.file("part"))) << block << " " << offsets;
    EXPECT_NE(message, too_long) << block << " " << offsets;
  }
}

TEST(Checkpoint, AManifestWithAnotherLayoutOrFormatIsRefused) {
  const TempFolder folder;
  const Everything all = everything(8);
  DROVER_EXPECT_OK(save(all, folder.file("ck"), 20, 1));
  const std::string at = checkpoint_folder(folder.file("ck"), 20);
  const CheckpointManifest good = read_manifest(at).value();
  const auto trouble = [&](const std::function<void(CheckpointManifest&)>& change) {
    CheckpointManifest other = good;
    change(other);
    DROVER_EXPECT_OK(write_manifest(other, at));
    return trouble_with(at);
  };
  EXPECT_EQ(trouble([](auto&) {}), "");
  const std::string part = at + "/shard-0.safetensors";
  const std::string manifest = at + "/" + kManifestName;
  EXPECT_THAT(trouble([](auto& other) { other.tensors.back().size += 4000; }),
              mentions(good.tensors.back().name, at));
  EXPECT_THAT(trouble([](auto& other) { other.tensors.pop_back(); }), mentions(part));
  const std::string too_many =
      trouble([](auto& other) { other.tensors.back().size = ~uint64_t{0}; });
  EXPECT_THAT(too_many, AllOf(mentions(at), Not(mentions(good.tensors.back().name))));
  EXPECT_THAT(trouble([](auto& other) { other.files.clear(); }),
              mentions(good.tensors.front().name, at));
  const std::string twice = trouble([](auto& other) { other.files.push_back(other.files[0]); });
  EXPECT_THAT(twice, AllOf(mentions(at), Not(mentions(good.tensors.front().name)), Ne(too_many)));
  EXPECT_THAT(trouble([](auto& other) { other.files[0].name = "../manifest.json"; }),
              mentions(manifest));
  EXPECT_THAT(trouble([](auto& other) { other.step = 21; }), mentions(part, 20, 21));
}

// A kill between any two changes of the disk leaves the previous checkpoint or the new one. Files
// that it leaves do not disturb the next attempt.
TEST(Checkpoint, AKillAtAnyTimeLeavesAUsableCheckpoint) {
  const Everything before = everything(9, 4);
  const Everything after = everything(10, 4);
  bool finished = false;
  int points = 0;
  for (; !finished; ++points) {
    SCOPED_TRACE(points);
    ASSERT_LT(points, 1000);
    const TempFolder folder;
    const std::string dir = folder.file("ck");
    DROVER_EXPECT_OK(save(before, dir, 200, 2));
    int left = points;
    finished = save(after, dir, 400, 2, [&] { return left-- > 0; }).ok();
    const auto newest = newest_checkpoint(dir);
    ASSERT_TRUE(newest.ok()) << newest.error().message;
    ASSERT_TRUE(newest.value().checkpoint.has_value());
    const Version step = newest.value().checkpoint->manifest().step;
    EXPECT_TRUE(step == 200 || step == 400);
    EXPECT_TRUE(!finished || step == 400);
    EXPECT_EQ(fs::exists(checkpoint_folder(dir, 400) + "/" + kManifestName), step == 400);

    // The next attempt continues from there and writes to the same folder.
    DROVER_EXPECT_OK(set_aside_after(dir, step));
    DROVER_EXPECT_OK(save(after, dir, 400, 1));
    DROVER_EXPECT_OK(prune_checkpoints(dir, 1));
    EXPECT_EQ(steps_in(dir), std::vector<Version>{400});
    for (const auto& each : fs::recursive_directory_iterator(dir))
      EXPECT_EQ(each.path().string().find(kPartialSuffix), std::string::npos) << each.path();
  }
  EXPECT_GT(points, 12);
}

TEST(Checkpoint, AFullDiskIsReportedAndLeavesNoFiles) {
  const TempFolder folder;
  const Everything all = everything(11);
  const std::string dir = folder.file("ck");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 2000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status saved = save(all, dir, 20, 1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error(), is_error(ErrorKind::kSystem, "shard-0.safetensors"));
  EXPECT_EQ(saved.error().os_error, EFBIG);
  EXPECT_TRUE(fs::is_empty(checkpoint_folder(dir, 20)));
}

TEST(Checkpoints, FindsTheNewestUsableOneAndNamesTheSkippedOnes) {
  const TempFolder folder;
  const std::string dir = folder.file("ck");
  const Everything all = everything(12, 3);
  for (const Version step : {200u, 400u, 600u}) DROVER_EXPECT_OK(save(all, dir, step, 2));
  const fs::path part = fs::path(checkpoint_folder(dir, 600)) / "shard-0.safetensors";
  std::string bytes = read_text(part);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  write_text(part, bytes);
  DROVER_EXPECT_OK(make_folder(checkpoint_folder(dir, 800)));
  const auto newest = newest_checkpoint(dir);
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest.value().checkpoint->manifest().step, 400u);
  ASSERT_EQ(newest.value().skipped.size(), 2u);
  EXPECT_THAT(newest.value().skipped[0].trouble,
              mentions(checkpoint_folder(dir, 800) + "/" + kManifestName));
  EXPECT_THAT(newest.value().skipped[1].trouble, mentions(part.string()));
  EXPECT_EQ(newest_checkpoint(dir, 400).value().checkpoint->manifest().step, 200u);
  EXPECT_FALSE(newest_checkpoint(dir, 200).value().checkpoint) << "there is no earlier one";

  // The folder of one checkpoint gives that one or an error. A trailing slash is allowed.
  EXPECT_EQ(
      newest_checkpoint(checkpoint_folder(dir, 200) + "/").value().checkpoint->manifest().step,
      200u);
  EXPECT_FALSE(newest_checkpoint(checkpoint_folder(dir, 600)).ok());
  EXPECT_FALSE(newest_checkpoint(checkpoint_folder(dir, 800)).ok());
  EXPECT_FALSE(newest_checkpoint(folder.file("nowhere")).ok());
}

TEST(Checkpoints, PruningKeepsTheNewestAndThoseThatMayBeIncomplete) {
  const TempFolder folder;
  const std::string dir = folder.file("ck");
  const Everything all = everything(13, 3);
  for (const Version step : {100u, 200u, 300u, 400u, 500u})
    DROVER_EXPECT_OK(save(all, dir, step, 1));
  DROVER_EXPECT_OK(make_folder(checkpoint_folder(dir, 350)));  // incomplete
  DROVER_EXPECT_OK(make_folder(checkpoint_folder(dir, 600)));  // perhaps being written
  DROVER_EXPECT_OK(make_folder(dir + "/notes"));
  DROVER_EXPECT_OK(prune_checkpoints(dir, 2));
  EXPECT_EQ(steps_in(dir), (std::vector<Version>{400, 500}));
  EXPECT_FALSE(fs::exists(checkpoint_folder(dir, 350)));
  EXPECT_TRUE(fs::exists(checkpoint_folder(dir, 600)));
  EXPECT_TRUE(fs::exists(dir + "/notes"));
  DROVER_EXPECT_OK(prune_checkpoints(dir, 0));
  EXPECT_EQ(steps_in(dir), std::vector<Version>{500});
}

TEST(Checkpoints, ContinuingFromAnEarlierCheckpointDestroysNone) {
  const TempFolder folder;
  const std::string dir = folder.file("ck");
  const Everything all = everything(14, 3);
  for (const Version step : {100u, 200u, 300u}) DROVER_EXPECT_OK(save(all, dir, step, 1));
  DROVER_EXPECT_OK(make_folder(checkpoint_folder(dir, 400)));
  const std::string aside = checkpoint_folder(dir, 300) + ".aside";
  EXPECT_EQ(set_aside_after(dir, 100).value().back(), aside);
  EXPECT_EQ(steps_in(dir), std::vector<Version>{100});
  EXPECT_EQ(trouble_with(aside), "");
  DROVER_EXPECT_OK(save(all, dir, 300, 1));
  EXPECT_EQ(set_aside_after(dir, 100).value(), std::vector<std::string>{aside + "-2"});
  EXPECT_EQ(trouble_with(aside), "") << "a checkpoint that was set aside earlier stays";
  EXPECT_FALSE(fs::exists(checkpoint_folder(dir, 400)));
  DROVER_EXPECT_OK(set_aside_after(folder.file("nowhere"), 100));
}

}  // namespace
}  // namespace drover
