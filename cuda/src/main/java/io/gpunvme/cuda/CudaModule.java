package io.gpunvme.cuda;

/** Device code that was loaded into a context. Safe for all threads. */
public final class CudaModule extends ContextResource {
  private final long handle;
  private final String log;

  private CudaModule(CudaContext context, ModuleCalls.Loaded loaded) {
    super(context, "CUDA module " + Driver.hex(loaded.handle()));
    handle = loaded.handle();
    log = loaded.log();
  }

  static CudaModule load(CudaContext context, byte[] image) {
    if (image.length == 0) {
      throw new IllegalArgumentException("a module of 0 bytes");
    }
    return new CudaModule(context, context.api().modules().load(image));
  }

  /** The log of the driver's compiler, possibly empty. */
  public String log() {
    return log;
  }

  /**
   * A kernel, with its code on the device.
   *
   * @param name as in the PTX: {@code extern "C"} or mangled
   * @throws CudaException {@link CudaException#NOT_FOUND} if there is none of this name
   */
  public CudaFunction function(String name) {
    begin();
    try {
      long function = api().modules().function(handle, name);
      api().functions().load(function);
      return new CudaFunction(this, name, function, api().functions().parameterSizes(function));
    } finally {
      end();
    }
  }

  /**
   * A global variable.
   *
   * @throws CudaException {@link CudaException#NOT_FOUND} if there is none of this name
   */
  public GlobalVariable global(String name) {
    begin();
    try {
      return api().modules().global(handle, name);
    } finally {
      end();
    }
  }

  @Override
  void free() {
    api().modules().unload(handle);
  }
}
