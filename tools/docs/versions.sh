# What tools/docs.sh uses, pinned. Doxygen is Debian's.
# shellcheck shell=bash disable=SC2034
DOCS_DEBIAN_PACKAGES=(doxygen python3 python3-venv)
DOCS_PYTHON_PACKAGES=(
  mkdocs==1.6.1 click==8.5.1 ghp-import==2.1.0 Jinja2==3.1.6 Markdown==3.11.3 MarkupSafe==3.0.4 mergedeep==1.3.4
  mkdocs-get-deps==0.2.2 packaging==26.3 pathspec==1.1.1 platformdirs==4.14.5 python-dateutil==4.0.0 PyYAML==6.0.3
  pyyaml_env_tag==1.1 tzdata==2026.6 watchdog==7.1.0
)
