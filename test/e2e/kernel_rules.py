"""What tests of the kernel modes ask of the gateway's rules, by mode."""

import re


class Nftables:
    """Tables `ip sluice` and `ip6 sluice`."""

    CHANGED = "our tables were changed from outside"
    VARIANTS = [""]
    LEFT = "table ip theirs {\n}\n"

    def __init__(self, net):
        self.net = net

    def listing(self):
        return self.net.run("gw", "nft", "list", "ruleset").stdout

    def add_theirs(self):
        self.net.run("gw", "nft", "add", "table", "ip", "theirs")

    def flush(self):
        self.net.run("gw", "nft", "flush", "ruleset")

    def fill_affinity_memory(self):
        """As many IPv4 sources as it has places for: what is there is left, places are counted."""
        listed = self.net.run("gw", "nft", "list", "set", "ip", "sluice", "affinity-sources").stdout
        places = int(re.search(r"size (\d+)", listed).group(1))
        taken = listed.count("expires")
        elements = ",".join(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255} . 1"
                            for n in range(places - taken))
        path = self.net.dir / "sources.nft"
        path.write_text(f"add element ip sluice affinity-sources {{ {elements} }}\n")
        self.net.run("gw", "nft", "-f", path)

    def has_endpoints(self, count):
        """Some Service has that many."""
        found = {}
        slot = r"(\S+ \. \w+ \. \w+) \. \d+ : (\S+ \. \w+)"
        for frontend, endpoint in re.findall(slot, self.listing()):
            found.setdefault(frontend, set()).add(endpoint)
        return any(len(endpoints) == count for endpoints in found.values())

    def strays(self, endpoints):
        """Destinations that a Service's packets may get and must not. endpoints: by name."""
        del endpoints  # one transaction for all: requests tell
        return []


class Iptables:
    """Chains KUBE-*, of both families."""

    CHANGED = "our chains were changed from outside"
    VARIANTS = ["nft", "legacy"]
    LEFT = ":THEIRS -\n:KUBE-FIREWALL -\n"

    def __init__(self, net):
        self.net = net

    def save(self, family="", variant="nft"):
        return self.net.run("gw", f"ip{family}tables-{variant}-save").stdout

    def listing(self):
        """Chains that are not built in."""
        chains = re.findall(r"^:(\S+ -) ", self.save() + self.save(6), re.MULTILINE)
        return "".join(f":{chain}\n" for chain in sorted(set(chains), reverse=True))

    def add_theirs(self):
        self.net.run("gw", "iptables-nft", "-t", "nat", "-N", "THEIRS")

    def flush(self):
        for table in ("nat", "filter", "mangle"):
            for flag in ("-F", "-X"):
                self.net.run("gw", "iptables-nft", "-t", table, flag)

    def has_endpoints(self, count):
        for variant in self.VARIANTS:
            picks = re.findall(r"^-A (KUBE-SVC-\S+) .*-j KUBE-SEP-", self.save("", variant),
                               re.MULTILINE)
            if any(picks.count(chain) == count for chain in picks):
                return True
        return False

    def strays(self, endpoints):
        """Destinations that a Service's packets may get and must not. endpoints: by name."""
        found = []
        for variant in self.VARIANTS:
            for family in ("", 6):
                found += _strays(self.save(family, variant), endpoints)
        return found


def _strays(text, endpoints):
    rules = {}
    for chain, rule in re.findall(r"^-A (KUBE-\S+) (.*)$", text, re.MULTILINE):
        rules.setdefault(chain, []).append(rule)

    def destinations(chain):
        for rule in rules.get(chain, []):
            if to := re.search(r"--to-destination (\S+)", rule):
                yield to.group(1)
            elif jump := re.search(r"-j (KUBE-(?:SVC|SVL|EXT|FW|SEP)-\S+)", rule):
                yield from destinations(jump.group(1))

    found = []
    for rule in rules.get("KUBE-SERVICES", []) + rules.get("KUBE-NODEPORTS", []):
        entry = re.search(r'--comment "?test/(\w+):.* -j (KUBE-\S+)$', rule)
        if entry and entry.group(2) != "KUBE-MARK-MASQ":
            found += [f"{entry.group(1)} -> {to}" for to in destinations(entry.group(2))
                      if to not in endpoints[entry.group(1)]]
    return found


def of(net):
    return {"nftables": Nftables, "iptables": Iptables}[net.port_kind](net)
