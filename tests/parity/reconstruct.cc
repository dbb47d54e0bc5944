// reconstruct WEIGHTS INPUT OUTPUT: reconstructs pictures with a VQGAN. WEIGHTS is a file of this
// trainer or of Python's. INPUT holds "config" (JSON) and "img"; OUTPUT gets "recon" and "ids".
#include <millrace/training/checkpoint/checkpoint.h>
#include <millrace/training/checkpoint/tensors.h>
#include <millrace/training/checkpoint/weights.h>
#include <millrace/training/device/torch_api.h>
#include <millrace/training/models/module/module_tensors.h>
#include <millrace/training/models/vqgan/vqgan.h>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  using namespace millrace;
  if (argc != 4) {
    std::fprintf(stderr, "usage: reconstruct WEIGHTS INPUT OUTPUT\n");
    return 2;
  }
  try {
    const Value input = read_checkpoint(argv[2]);
    Vqgan model(VqganConfig::from_json(input["config"].as_string()));
    load_weights(argv[1], state_tensors(*model));
    torch::NoGradGuard no_grad;
    model->eval();
    const torch::Tensor pictures = as_tensor(input["img"]);
    write_checkpoint(argv[3], Dict{{"recon", to_value(model->reconstruct(pictures))},
                                   {"ids", to_value(model->encode(pictures).indices)}});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reconstruct: %s\n", error.what());
    return 1;
  }
}
