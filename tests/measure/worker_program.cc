#include "measure/measurer.h"

int main(int argc, char** argv) { return tensorsmith::measure::worker_main(argc, argv); }
