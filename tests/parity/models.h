// One function a model: builds it from the fixture, runs every tag, and reports. A new model adds a
// function here and its name in parity_check.cc.
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
