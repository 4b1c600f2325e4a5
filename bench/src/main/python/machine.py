"""What a result file says about the machine, and the file."""

import datetime
import json
import os
import platform
import subprocess

import torch


def machine():
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    driver = "none"
    if gpu != "none":
        version = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True, check=True
        ).stdout.split()[0]
        driver = f"{version} (CUDA {torch.version.cuda})"
    with open("/proc/cpuinfo") as told:
        cpu = next((line.split(":", 1)[1].strip() for line in told if line.startswith("model name")), "unknown")
    return {
        "gpu": gpu, "driver": driver, "cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release(),
        "python": platform.python_version(), "torch": torch.__version__,
    }


def tell(rows, commit, out):
    """Prints the results, and writes them to a file if there is one."""
    found = {"machine": machine(), "commit": commit, "date": str(datetime.date.today()), "results": rows}
    text = json.dumps(found, indent=1)
    print(text)
    if out:
        with open(out, "w") as file:
            file.write(text + "\n")
