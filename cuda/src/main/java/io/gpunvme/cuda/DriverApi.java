package io.gpunvme.cuda;

/** The calls of one driver library, in the groups of its reference manual. */
record DriverApi(
    DeviceCalls devices,
    ContextCalls contexts,
    MemoryCalls memory,
    CopyCalls copies,
    StreamCalls streams,
    ModuleCalls modules,
    FunctionCalls functions) {
  static DriverApi of(Driver driver) {
    return new DriverApi(
        new DeviceCalls(driver),
        new ContextCalls(driver),
        new MemoryCalls(driver),
        new CopyCalls(driver),
        new StreamCalls(driver),
        new ModuleCalls(driver),
        new FunctionCalls(driver));
  }
}
