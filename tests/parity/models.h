// One function per model: builds the model from the fixture, runs all comparisons and reports them.
// For a new model, add a function here and its name in parity_check.cc.
#pragma once

#include "tests/parity/fixture.h"
#include "tests/parity/report.h"

namespace millrace {

void check_mulan(const Fixture& fixture, Report& report);
void check_mesh_transformer(const Fixture& fixture, Report& report);
void check_nuwa(const Fixture& fixture, Report& report);
void check_nuwa_vqgan(const Fixture& fixture, Report& report);
void check_mesh_autoencoder(const Fixture& fixture, Report& report);
void check_video_tokenizer(const Fixture& fixture, Report& report);
void check_vqgan(const Fixture& fixture, Report& report);

}  // namespace millrace
