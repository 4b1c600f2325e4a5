package io.gpunvme.cli;

import io.gpunvme.base.Version;
import io.gpunvme.cli.output.OutputStreams;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** The command without a subcommand: prints the help. */
@Command(
    name = "gpunvme",
    mixinStandardHelpOptions = true,
    version = "gpunvme " + Version.VERSION,
    description = "NVMe storage driven by a GPU, or by the CPU on a machine without one.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {
      "",
      "A device is sim:key=value,… (an embedded NVMe controller: gpunvme help sim) or an SSD,",
      "vfio:DDDD:BB:DD.F or kmod:DDDD:BB:DD.F (gpunvme list shows them, gpunvme bind prepares"
          + " one),",
      "or a function of another process: vfio-user:SOCKET (SPDK's target, gpunvme sim serve).",
      "",
      "Examples:",
      "  gpunvme demo                                     a 256MiB file into accelerator memory",
      "  gpunvme demo model.safetensors --queues 8        your own file",
      "  gpunvme bench random                             how fast this machine is",
      "  gpunvme gather                                   a kernel decides what to read",
      "  gpunvme graph generate kron --scale 20 --output kron20.graph",
      "  gpunvme bench graph kron20.graph --algorithm bfs  its edges read from an SSD",
      "  gpunvme explain model.safetensors                which path a file would take, and why",
      "  gpunvme inspect /models/llama --layers           tensors of a model, or sums of its"
          + " layers",
      "  gpunvme plan-model a.gguf --gpu-budget 8GiB      what stays there, and what is streamed",
      "  gpunvme plan-fleet --machines 1000 --model 140GiB",
      "  gpunvme load /models/llama --verify              its weights into accelerator memory",
      "  gpunvme write-model a.gguf --device vfio:0000:01:00.0 --allow-write",
      "  gpunvme plan --size 1GiB 1000:1MiB:1000          which I/Os would read these ranges",
      "  gpunvme ls -l disk.img:/models                   files without the kernel: ext4, FAT32",
      "  gpunvme extents vfio:0000:01:00.0:/model.gguf    where on the SSD a file is",
      "  gpunvme cufile -- python train.py                a program for cuFile, on gpunvme",
      "  gpunvme list                                     SSDs and GPUs of this machine",
      "  gpunvme topology --svg machine.svg               how they are connected, as a picture",
      "  gpunvme top                                      what controllers do at this moment",
      "  gpunvme doctor                                   what is missing here, and how to fix it",
      "  gpunvme try 0000:01:00.0                         what an SSD does here, and give it back",
      "  gpunvme bind 0000:01:00.0                        give an SSD to vfio:0000:01:00.0",
      "  gpunvme check-p2p vfio:0000:01:00.0              can the GPU ring its doorbells",
      "  gpunvme pin kmod:0000:01:00.0 64KiB              bus addresses of memory",
      "  gpunvme sim serve --socket /tmp/ssd.sock         an SSD for other programs",
      "  gpunvme identify sim:size=1GiB,lba=4096",
      "  gpunvme write sim:file=disk.img,size=64MiB --lba 0 --in data.bin --allow-write",
      "  gpunvme read sim:file=disk.img --lba 0 --bytes 1MiB --out copy.bin",
      "  gpunvme regs sim:",
      "  gpunvme log sim: smart",
      "  gpunvme feature sim: get volatile-write-cache",
      "",
      "Exit codes: 0 done, 1 failed, 2 wrong usage. --json prints one JSON object on standard",
      "output and everything else on standard error."
    })
final class Gpunvme implements Callable<Integer> {
  private final OutputStreams streams;

  @Spec private @Nullable CommandSpec spec;

  Gpunvme(OutputStreams streams) {
    this.streams = streams;
  }

  @Override
  public Integer call() {
    if (spec != null) {
      spec.commandLine().usage(streams.out());
    }
    return ExitCode.OK;
  }
}
