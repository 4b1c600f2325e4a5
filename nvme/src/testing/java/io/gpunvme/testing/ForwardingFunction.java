package io.gpunvme.testing;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.HostMemory;
import io.gpunvme.nvme.memory.RemoteMemory;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.pci.ConfigSpace;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.nvme.pci.PciFunction;
import java.lang.foreign.MemorySegment;

/** A function that passes everything on to another; for those that change one thing. */
public class ForwardingFunction implements PciFunction {
  private final PciFunction function;

  /** Passes on to this. */
  public ForwardingFunction(PciFunction function) {
    this.function = function;
  }

  @Override
  public String name() {
    return function.name();
  }

  @Override
  public Bar bar(int index) {
    return function.bar(index);
  }

  @Override
  public ConfigSpace config() {
    return function.config();
  }

  @Override
  public NumaHome home() {
    return function.home();
  }

  @Override
  public int addressBits() {
    return function.addressBits();
  }

  @Override
  public boolean polled() {
    return function.polled();
  }

  @Override
  public DoorbellPoller poller() {
    return function.poller();
  }

  @Override
  public HostMemory allocate(long bytes) {
    return function.allocate(bytes);
  }

  @Override
  public BusRange map(MemorySegment memory) {
    return function.map(memory);
  }

  @Override
  public BusRange map(RemoteMemory memory) {
    return function.map(memory);
  }

  @Override
  public void reset() {
    function.reset();
  }

  @Override
  public void close() {
    function.close();
  }
}
