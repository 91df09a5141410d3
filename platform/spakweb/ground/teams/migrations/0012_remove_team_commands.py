from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("teams", "0010_token_rule"),
    ]

    operations = [
        migrations.RemoveField(model_name="team", name="commands"),
    ]
