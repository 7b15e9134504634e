// Replay: what a policy would have done with recorded run-times.
#pragma once
