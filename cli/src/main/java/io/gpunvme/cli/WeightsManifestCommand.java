package io.gpunvme.cli;

import io.gpunvme.cli.output.Counts;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.models.Manifest;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.StorageAddress;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme weights manifest MODEL}. */
@Command(
    name = "manifest",
    description = {
      "Compute the checksum of each tensor of a model, for 'load --verify'.",
      "The checksums (CRC-32C) are written to a new file."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme weights manifest model.safetensors     to model.safetensors.manifest.json",
      "  gpunvme weights manifest /models/llama         to /models/llama/model.manifest.json",
      "  gpunvme weights manifest a.gguf --device vfio:0000:01:00.0#1 --out a.manifest.json"
    })
final class WeightsManifestCommand extends ModelCommand {
  @Option(
      names = "--out",
      paramLabel = "FILE",
      description =
          "File for the checksums, written whole or not at all (MODEL.manifest.json; in a folder,"
              + " model.manifest.json).")
  private @Nullable Path out;

  WeightsManifestCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run(Weights weights, StorageAddress address) throws IOException {
    Path target = target(address);
    if (Files.exists(target)) {
      throw new UsageException(target + " exists");
    }
    Manifest manifest;
    try (OutputFile file = OutputFile.create(target);
        Progress progress = Progress.on(streams())) {
      progress.begin("checksums", weights.bytes());
      manifest = weights.manifest(progress::moved);
      file.stream().write((manifest.toJson() + "\n").getBytes(StandardCharsets.UTF_8));
      file.commit();
    }
    int tensors = manifest.entries().size();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("manifest", target.toString());
    all.put("tensors", tensors);
    all.put("bytes", weights.bytes());
    print(
        () -> out().printf("%s: CRC-32C of %s%n", target, Counts.of(tensors, "tensor")), () -> all);
    return ExitCode.OK;
  }

  private Path target(StorageAddress address) {
    Path given = out;
    if (given != null) {
      return given;
    }
    Path model = address.file();
    if (model == null) {
      throw new UsageException(
          address + " is on a device: give a file for the checksums (--out FILE)");
    }
    return ManifestFiles.usual(model);
  }
}
