package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Vs;
import java.util.ArrayList;
import java.util.List;

/**
 * Builds a {@link SimConfig}, whose components say what each value means. Not safe for several
 * threads. Nothing is checked before {@link #build}.
 */
public final class SimConfigBuilder {
  private final List<NamespaceConfig> namespaces = new ArrayList<>();
  private final List<FaultRule> faults = new ArrayList<>();
  private boolean noNamespaces;
  private int maxNamespaces;
  private long maxTransfer = 512L << 10;
  private int mqes = 1023;
  private int ioQueues = 64;
  private int vectors = 65;
  private int dstrd = 0;
  private int to = 2;
  private int mpsMax = 4;
  private Vs version = Vs.V1_4;
  private long readyNanos = 0;
  private long shutdownNanos = 0;
  private long latencyNanos = 50_000;
  private int workers = Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, 4);
  private boolean outOfOrder = false;
  private boolean strict = true;
  private boolean volatileWriteCache = true;
  private boolean sgl = true;
  private boolean dbbuf = true;
  private boolean contiguousQueues = true;
  private boolean subsystemReset = true;
  private boolean namespaceManagement = false;
  private boolean keepAlive = false;
  private long cmbBytes = 0;
  private int hmbPreferred = 0;
  private int hmbMinimum = 0;
  private int addressBits = 64;
  private int aerl = 3;
  private int acl = 3;
  private int elpe = 63;
  private String serial = "GPUNVME0001";
  private String model = "gpunvme embedded controller";
  private String firmware = "1.0";
  private long seed = 1;

  SimConfigBuilder() {}

  /** Adds the next namespace; without any there is one of 64 MiB with 512-byte blocks in memory. */
  public SimConfigBuilder namespace(NamespaceConfig namespace) {
    namespaces.add(namespace);
    return this;
  }

  /** Starts without any namespace. */
  public SimConfigBuilder noNamespaces() {
    noNamespaces = true;
    return this;
  }

  /** NN; 0 (the default): as many as there are namespaces, and at least one. */
  public SimConfigBuilder maxNamespaces(int maxNamespaces) {
    this.maxNamespaces = maxNamespaces;
    return this;
  }

  /** Adds a fault rule. */
  public SimConfigBuilder fault(FaultRule fault) {
    faults.add(fault);
    return this;
  }

  /** MDTS in bytes: a power of two from 8192 on, or 0 for no limit. */
  public SimConfigBuilder maxTransfer(long maxTransfer) {
    this.maxTransfer = maxTransfer;
    return this;
  }

  /** CAP.MQES, 0-based. */
  public SimConfigBuilder mqes(int mqes) {
    this.mqes = mqes;
    return this;
  }

  /** How many I/O submission queues, and as many completion queues. */
  public SimConfigBuilder ioQueues(int ioQueues) {
    this.ioQueues = ioQueues;
    return this;
  }

  /** MSI-X vectors. */
  public SimConfigBuilder vectors(int vectors) {
    this.vectors = vectors;
    return this;
  }

  /** CAP.DSTRD. */
  public SimConfigBuilder dstrd(int dstrd) {
    this.dstrd = dstrd;
    return this;
  }

  /** CAP.TO, in 500 ms units. */
  public SimConfigBuilder to(int to) {
    this.to = to;
    return this;
  }

  /** CAP.MPSMAX. */
  public SimConfigBuilder mpsMax(int mpsMax) {
    this.mpsMax = mpsMax;
    return this;
  }

  /** VS. */
  public SimConfigBuilder version(Vs version) {
    this.version = version;
    return this;
  }

  /** Time from CC.EN to CSTS.RDY, ns. */
  public SimConfigBuilder readyNanos(long readyNanos) {
    this.readyNanos = readyNanos;
    return this;
  }

  /** Time from CC.SHN to shutdown complete, ns. */
  public SimConfigBuilder shutdownNanos(long shutdownNanos) {
    this.shutdownNanos = shutdownNanos;
    return this;
  }

  /** Time from fetching an I/O command to executing it, ns. */
  public SimConfigBuilder latencyNanos(long latencyNanos) {
    this.latencyNanos = latencyNanos;
    return this;
  }

  /** Worker threads, as many as half of the processors but 4 at most; 0: the caller polls. */
  public SimConfigBuilder workers(int workers) {
    this.workers = workers;
    return this;
  }

  /** Shuffle completions. */
  public SimConfigBuilder outOfOrder(boolean outOfOrder) {
    this.outOfOrder = outOfOrder;
    return this;
  }

  /** Refuse reserved fields that are not zero. */
  public SimConfigBuilder strict(boolean strict) {
    this.strict = strict;
    return this;
  }

  /** VWC present. */
  public SimConfigBuilder volatileWriteCache(boolean volatileWriteCache) {
    this.volatileWriteCache = volatileWriteCache;
    return this;
  }

  /** SGLs for I/O commands. */
  public SimConfigBuilder sgl(boolean sgl) {
    this.sgl = sgl;
    return this;
  }

  /** Doorbell Buffer Config. */
  public SimConfigBuilder dbbuf(boolean dbbuf) {
    this.dbbuf = dbbuf;
    return this;
  }

  /** CAP.CQR. */
  public SimConfigBuilder contiguousQueues(boolean contiguousQueues) {
    this.contiguousQueues = contiguousQueues;
    return this;
  }

  /** CAP.NSSRS. */
  public SimConfigBuilder subsystemReset(boolean subsystemReset) {
    this.subsystemReset = subsystemReset;
    return this;
  }

  /** Namespace Management and Attachment. */
  public SimConfigBuilder namespaceManagement(boolean namespaceManagement) {
    this.namespaceManagement = namespaceManagement;
    return this;
  }

  /** Keep Alive and its timer. */
  public SimConfigBuilder keepAlive(boolean keepAlive) {
    this.keepAlive = keepAlive;
    return this;
  }

  /** Controller memory buffer, bytes; 0: none. */
  public SimConfigBuilder cmbBytes(long cmbBytes) {
    this.cmbBytes = cmbBytes;
    return this;
  }

  /** HMPRE, in 4 KiB units; 0: none wanted. */
  public SimConfigBuilder hmbPreferred(int hmbPreferred) {
    this.hmbPreferred = hmbPreferred;
    return this;
  }

  /** HMMIN, in 4 KiB units. */
  public SimConfigBuilder hmbMinimum(int hmbMinimum) {
    this.hmbMinimum = hmbMinimum;
    return this;
  }

  /** Width of a bus address. */
  public SimConfigBuilder addressBits(int addressBits) {
    this.addressBits = addressBits;
    return this;
  }

  /** AERL, 0-based. */
  public SimConfigBuilder aerl(int aerl) {
    this.aerl = aerl;
    return this;
  }

  /** ACL, 0-based. */
  public SimConfigBuilder acl(int acl) {
    this.acl = acl;
    return this;
  }

  /** ELPE, 0-based. */
  public SimConfigBuilder elpe(int elpe) {
    this.elpe = elpe;
    return this;
  }

  /** SN. */
  public SimConfigBuilder serial(String serial) {
    this.serial = serial;
    return this;
  }

  /** MN. */
  public SimConfigBuilder model(String model) {
    this.model = model;
    return this;
  }

  /** FR. */
  public SimConfigBuilder firmware(String firmware) {
    this.firmware = firmware;
    return this;
  }

  /** Seed of every random decision. */
  public SimConfigBuilder seed(long seed) {
    this.seed = seed;
    return this;
  }

  /**
   * Checks and builds.
   *
   * @throws io.gpunvme.base.InvalidRequestException naming the value that is out of range
   */
  public SimConfig build() {
    List<NamespaceConfig> configured = new ArrayList<>(namespaces);
    if (configured.isEmpty() && !noNamespaces) {
      configured.add(NamespaceConfig.ram(64L << 20, 512));
    }
    return new SimConfig(
        configured,
        maxNamespaces == 0 ? Math.max(1, configured.size()) : maxNamespaces,
        maxTransfer,
        mqes,
        ioQueues,
        vectors,
        dstrd,
        to,
        mpsMax,
        version,
        readyNanos,
        shutdownNanos,
        latencyNanos,
        workers,
        outOfOrder,
        strict,
        volatileWriteCache,
        sgl,
        dbbuf,
        contiguousQueues,
        subsystemReset,
        namespaceManagement,
        keepAlive,
        cmbBytes,
        hmbPreferred,
        hmbMinimum,
        addressBits,
        aerl,
        acl,
        elpe,
        serial,
        model,
        firmware,
        faults,
        seed);
  }
}
