package io.gpunvme.cli;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.AcceleratorName;
import io.gpunvme.gpu.accel.Accelerators;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The option of all commands whose data may go to a GPU or to the CPU stand-in. */
final class AcceleratorOption {
  /** The name, as it was given: {@code auto}, {@code gpu:1}, ... */
  static final class Converter implements ITypeConverter<String> {
    @Override
    public String convert(String text) {
      try {
        return AcceleratorName.parse(text).toString();
      } catch (InvalidRequestException e) {
        throw new TypeConversionException(String.valueOf(e.getMessage()));
      }
    }
  }

  @Option(
      names = "--accelerator",
      paramLabel = "WHICH",
      converter = Converter.class,
      description =
          "Memory that the data goes to: gpu (the first), gpu:N as CUDA counts, the PCI address or"
              + " UUID of a GPU, cpu (a stand-in: host memory), or auto: what GPUNVME_ACCELERATOR"
              + " names, or else the GPU if there is one (auto).")
  private String name = "auto";

  /** Opens it; the caller closes it. */
  Accelerators.Choice open() {
    return Accelerators.open(name);
  }
}
